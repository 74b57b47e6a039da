"""Token verification, also known as speculative sampling.

Leviathan, Kalman, Matias, ICML 2023, arXiv 2211.17192, algorithm 1; Chen et al. 2023,
arXiv 2302.01318, "modified rejection sampling".
"""

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.logits import law
from specjax.types import Array, Draft
from specjax.verify import parts
from specjax.verify.rule import CHAINS, Judgement, Rule


def token() -> Rule:
  """Accepts X_i with probability min(1, p(X_i) / q(X_i)).

  Otherwise the extra token is drawn from the residual [p - q]+, normalised.
  """
  return Rule(Partial(_judge), lossless=True, coupled=False, serves=CHAINS, bottom_up=False)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  log_q = parts.log_q_of_tokens(draft, log_p.dtype)
  ratio = parts.log_ratio(parts.at_token(log_p[:-1], draft.tokens), log_q)
  return Judgement(
      accept=jnp.where(draft.valid, jnp.exp(jnp.minimum(ratio, 0)), 0),
      log_next=lambda row: law.log_residual(log_p[row], parts.law_below(draft, row, log_p)))
