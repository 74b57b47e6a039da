"""Greedy verification: the longest prefix that the target's argmax agrees with.

Stern, Shazeer, Uszkoreit, NeurIPS 2018, arXiv 1811.03115, section 3.
"""

from jax.tree_util import Partial

from specjax.logits import argmax
from specjax.types import Array, Draft
from specjax.verify import parts
from specjax.verify.rule import ANY, Judgement, Rule


def greedy() -> Rule:
  """Accepts a node iff it is the target's argmax, lowest index among ties.

  The text is that of greedy decoding. It has the target's law only where that law is a point mass
  (temperature 0), so the rule does not count as lossless.
  """
  return Rule(Partial(_judge), lossless=False, coupled=False, serves=ANY, bottom_up=False)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  best = argmax(log_p)
  agrees = draft.valid & (draft.tokens == best[draft.parents + 1])
  return Judgement(
      accept=agrees.astype(log_p.dtype),
      log_next=lambda row: parts.point_mass(best[row], log_p.shape[1], log_p.dtype))
