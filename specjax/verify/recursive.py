"""Recursive rejection sampling over the children of a node, with or without replacement.

Yang, Huang, Dai, Chen 2024, arXiv 2401.06706; Jeon, Gagrani, Goel, Park, Lee, Lott 2024,
arXiv 2402.14160, section 3; without replacement also Sequoia, Chen et al., NeurIPS 2024,
arXiv 2402.12374, algorithm 2.
"""

from jax.tree_util import Partial

from specjax.trees import order
from specjax.types import Array, Draft
from specjax.verify import parts, residuals
from specjax.verify.rule import ANY, Judgement, Rule


def recursive() -> Rule:
  """Tries the children in index order, each against what its earlier siblings left of the target.

  `Draft.log_q` records the law of each node given its earlier siblings, so one formula serves both
  forms: independent siblings record the same q each, siblings without replacement the renormalised
  law without the earlier ones. On a chain the rule is `token`; point masses make it `match`.
  """
  return Rule(Partial(_judge), lossless=True, coupled=False, serves=ANY, bottom_up=False)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  turn = order.sibling_ranks(draft.parents)
  reach = residuals.reaches(draft, log_p, turn)
  return Judgement(
      accept=residuals.acceptances(draft, log_p, turn, reach),
      log_next=lambda row: parts.log_normalised(
          residuals.left_at(draft, log_p, reach, row), log_p[row]))
