"""List-level Gumbel coupling: the target reads the noise of all paths that agreed with it so far.

Rowan, Phan, Khisti, NeurIPS 2025, arXiv 2506.05632 ("Gumbel-max list sampling").
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax import keys as keys_lib, logits
from specjax.trees import order
from specjax.types import Array, CHAIN, Draft, PATH_NOISE, ROOT
from specjax.verify import checks, coupled
from specjax.verify.rule import Rule


def list_gumbel() -> Rule:
  """Draws argmax_x max_k (log p(x) + G_k(x)) over the noise G_k of the paths k that still agree.

  The draft is K chains below the root, path k being drawn at depth d by
  `logits.sample(keys.path(keys[d], k), log_q)`, k counting the children of the root; a chain is
  path 0, and the rule is `gumbel` there. The maximum of independent Gumbel fields is one again, up
  to a constant, so the text keeps the target's law; but which paths still agree depends on the
  draft, hence the text is not a function of the seed and the target alone.
  """
  serves = frozenset((CHAIN, PATH_NOISE))
  return Rule(Partial(_walk), lossless=True, coupled=True, serves=serves, bottom_up=False)


def _walk(keys: Array, draft: Draft, log_p: Array) -> tuple[Array, Array]:
  checks.check_chains(draft, "list_gumbel")
  branch = order.branches(draft.parents)
  slots = jnp.arange(max(branch.shape[0], 1), dtype=jnp.int32)
  # At the root all paths count, the invalid ones too:
  # whether a path was kept may hang on its noise.
  paths = jnp.maximum((draft.parents == ROOT).sum(dtype=jnp.int32), 1)

  def agreeing(standing):
    return paths, jnp.where(
        standing[0], slots < paths,
        (standing[None, 1:] & (branch[None, :] == slots[:, None])).any(-1))

  def noise(key, agreeing):
    paths, agrees = agreeing

    def add_path(k, best):
      def larger():
        return jnp.maximum(best, logits.noise(keys_lib.path(key, k), best.shape, best.dtype))

      return lax.cond(agrees[k], larger, lambda: best)

    start = jnp.full(log_p.shape[1:], -jnp.inf, log_p.dtype)
    return lax.fori_loop(0, paths, add_path, start)

  return coupled.follow(keys, draft, log_p, noise, agreeing)
