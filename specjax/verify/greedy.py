"""Greedy verification: the longest prefix that the target's argmax agrees with.

Stern, Shazeer, Uszkoreit, NeurIPS 2018, arXiv 1811.03115, section 3.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.types import Array, Decision, Draft
from specjax.verify.rule import Rule


def greedy() -> Rule:
  """Accepts a node iff it is the target's argmax, lowest index among ties.

  The text is that of greedy decoding. It has the target's law only where that law is a point mass
  (temperature 0), so the rule does not count as lossless.
  """
  return Rule(Partial(_decide), lossless=False, coupled=False, trees=True, bottom_up=False)


def _decide(draft: Draft, log_p: Array) -> Decision:
  best = jnp.argmax(log_p, -1).astype(jnp.int32)
  agrees = draft.valid & (draft.tokens == best[draft.parents + 1])
  return Decision(
      accept=agrees.astype(log_p.dtype),
      log_next=jnp.log(jax.nn.one_hot(best, log_p.shape[-1], dtype=log_p.dtype)))
