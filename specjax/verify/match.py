"""Sample and match: the target draws its own token and follows the drafted node that equals it.

The naive sampling of SpecInfer (Miao et al., ASPLOS 2024, arXiv 2305.09781, section 4.3), and what
engines do for deterministic drafts (EAGLE-2, Li et al., EMNLP 2024, arXiv 2406.16858).
"""

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.trees import order
from specjax.types import Array, Draft
from specjax.verify import parts
from specjax.verify.rule import ANY, Judgement, Rule


def match() -> Rule:
  """Draws Y ~ p and moves to the child Y if it was drafted, else stops and emits Y.

  Lossless for every way of drafting, since q is never read. As coins: a child x, given that the
  earlier siblings were not Y, is Y with probability p(x) / (1 - p(earlier siblings)), and the extra
  token has the law p without the children.
  """
  return Rule(Partial(_judge), lossless=True, coupled=False, serves=ANY, bottom_up=False)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  earlier = order.earlier_siblings(draft.parents) & draft.valid[None, :]
  same_token = draft.tokens[:, None] == draft.tokens[None, :]
  fresh = draft.valid & ~(earlier & same_token).any(-1)  # a duplicate has been ruled out already
  p = jnp.where(fresh, jnp.exp(log_p[draft.parents + 1, draft.tokens]), 0)
  left = 1 - jnp.where(earlier, p[None, :], 0).sum(-1)

  def log_next(row):
    children = draft.valid & (draft.parents == row - 1)
    tokens = jnp.where(children, draft.tokens, log_p.shape[1])  # out of bounds: dropped
    return parts.log_normalised(jnp.exp(log_p[row]).at[tokens].set(0, mode="drop"), log_p[row])

  # Rounding may leave less than p(x); the true quotient is then 1.
  return Judgement(jnp.where(p > 0, p / jnp.maximum(left, p), 0), log_next)
