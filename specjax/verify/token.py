"""Token verification, also known as speculative sampling.

Leviathan, Kalman, Matias, ICML 2023, arXiv 2211.17192, algorithm 1; Chen et al. 2023,
arXiv 2302.01318, "modified rejection sampling".
"""

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.logits import law
from specjax.types import Array, Decision, Draft
from specjax.verify import parts
from specjax.verify.rule import Rule


def token() -> Rule:
  """Accepts X_i with probability min(1, p(X_i) / q(X_i)); else the residual [p - q]+ speaks."""
  return Rule(Partial(_decide), lossless=True, coupled=False, trees=False, bottom_up=False)


def _decide(draft: Draft, log_p: Array) -> Decision:
  log_q = parts.draft_law(draft, log_p.shape[-1], log_p.dtype)
  log_ratio = parts.at_token(log_p[:-1], draft.tokens) - parts.at_token(log_q, draft.tokens)
  residual = jnp.where(draft.valid[:, None], law.log_residual(log_p[:-1], log_q), log_p[:-1])
  return Decision(
      accept=jnp.where(draft.valid, jnp.exp(jnp.minimum(log_ratio, 0)), 0),
      log_next=jnp.concatenate([residual, log_p[-1:]]))
