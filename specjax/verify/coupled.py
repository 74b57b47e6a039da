"""The walk of coupled rules: no coins, only a comparison of tokens drawn with shared noise."""

from typing import Callable

import jax
import jax.numpy as jnp
from jax import lax

from specjax import keys as keys_lib, logits
from specjax.types import Array, Draft, PyTree
from specjax.verify import checks

_ROWS_AT_ONCE = 8  # of a batch; at most seven of their noise fields are made in vain


def follow(
    keys: Array, draft: Draft, log_p: Array, noise: Callable[[Array, PyTree], Array],
    agreeing: Callable[[Array], PyTree] = lambda standing: (),
) -> tuple[Array, Array]:
  """Follows the target's own tokens down the draft, for as long as they have been drafted.

  Only the rows that the walk reaches are drawn from, so the noise that is made is that of the
  emitted tokens. Equal siblings (separate chains with one prefix) are followed together.

  Args:
    keys: key[depth + 1], the keys of the positions after the text.
    draft: the drafted nodes of one row.
    log_p: float[N + 1, V], the target's laws.
    noise: (key, agreeing) -> the field float[V] that is added to the target's law.
    agreeing: standing bool[N + 1] -> what else the noise depends on; `standing` marks all rows
      where the walk stands.

  Returns:
    The node int32[] where the walk stops, or ROOT,
    and the token int32[] that was not drafted there.
  """
  keys = keys_lib.typed(keys)
  checks.check_position_keys(keys)
  draw = _only_where_going(noise)

  def step(carry):
    depth, standing, _, going = carry
    token = draw(going, log_p, jnp.argmax(standing), keys[depth], agreeing(standing))
    agrees = draft.valid & standing[draft.parents + 1] & (draft.tokens == token)
    # Without a further key the walk has to stop, drafted or not; the token is right either way.
    continues = agrees.any() & (depth + 1 < keys.shape[0])
    return depth + 1, jnp.where(continues, jnp.append(False, agrees), standing), token, continues

  root = jnp.arange(draft.tokens.shape[0] + 1) == 0
  start = jnp.int32(0), root, jnp.int32(0), jnp.bool_(True)
  _, standing, token, _ = lax.while_loop(lambda carry: carry[-1], step, start)
  return jnp.argmax(standing).astype(jnp.int32) - 1, token


def _only_where_going(noise: Callable) -> Callable:
  """(going, log_p, row, key, agreeing) -> the token int32[] of the law log_p[row] under the noise.

  A vmap would make noise for the whole batch until its last row has stopped. This one's rule takes
  the rows that are still going, a few at a time, and leaves 0 for the others.
  """
  @jax.custom_batching.custom_vmap
  def draw(going, log_p, row, key, agreeing):
    del going
    return logits.argmax(log_p[row] + noise(key, agreeing))

  @draw.def_vmap
  def draw_batch(size, batched, *args):
    going, log_p, row, key, agreeing = jax.tree.map(
        lambda x, mapped: x if mapped else jnp.broadcast_to(x, (size, *x.shape)),
        args, tuple(batched))
    order = jnp.argsort(~going).astype(jnp.int32)  # stable: those that go on come first
    several = min(size, _ROWS_AT_ONCE)

    def some(turn, tokens):
      mine = order[jnp.minimum(turn * several + jnp.arange(several, dtype=jnp.int32), size - 1)]
      fields = jax.vmap(noise)(key[mine], jax.tree.map(lambda x: x[mine], agreeing))
      return tokens.at[mine].set(logits.argmax(log_p[mine, row[mine]] + fields))

    turns = -(-going.sum(dtype=jnp.int32) // several)
    return lax.fori_loop(0, turns, some, jnp.zeros(size, jnp.int32)), True

  return draw
