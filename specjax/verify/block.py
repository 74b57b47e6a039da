"""Block verification: the draft is judged as a whole, from its end.

Sun, Mendlovic, Leviathan, Aharoni, Beirami, Ro, Suresh, ICLR 2025, arXiv 2403.10444, algorithm 2.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.types import Array, Draft
from specjax.verify import parts
from specjax.verify.rule import CHAINS, Judgement, Rule


def block() -> Rule:
  """Accepts the longest prefix X_1 .. X_i whose coin falls below h_i.

  The weights are w_0 = 1, w_i = min(1, w_{i-1} p(X_i) / q(X_i)). The whole draft is accepted with
  probability h = w; a shorter prefix with h_i = Z_i / (Z_i + 1 - w_i), Z_i the mass of the residual
  [w_i p - q]+, which is also the law of the extra token. No lossless rule for a single drafted path
  accepts more tokens in expectation.
  """
  return Rule(Partial(_judge), lossless=True, coupled=False, serves=CHAINS, bottom_up=True)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  log_w = _log_weights(draft, log_p)

  def rejected_below(row):
    q = jnp.exp(parts.law_below(draft, row, log_p))
    return parts.after_rejection(log_w[row], jnp.exp(log_p[row]), q)

  # One row at a time, so that its exponentials stay in the cache.
  rows = jnp.arange(draft.tokens.shape[0], dtype=jnp.int32)
  stepped_back = lax.map(lambda row: rejected_below(row)[0], rows)
  continues = jnp.append(draft.valid[1:], False)  # the last valid node has no child to reject
  accept = jnp.where(continues, jnp.append(stepped_back[1:], 0), jnp.exp(log_w[1:]))
  return Judgement(
      accept=jnp.where(draft.valid, accept, 0),
      log_next=lambda row: jnp.log(rejected_below(row)[1]))


def _log_weights(draft: Draft, log_p: Array) -> Array:
  """float[N + 1]: log w of the root and of every node.

  The product of the ratios is clipped at every step, not each ratio: in logarithms, a running sum
  less its running maximum. A ratio of 0 makes the sum -inf and leaves the maximum finite.
  """
  ratios = parts.log_ratio(
      parts.at_token(log_p[:-1], draft.tokens), parts.log_q_of_tokens(draft, log_p.dtype))
  total = jnp.cumsum(jnp.where(draft.valid, ratios, 0))
  log_w = total - jnp.maximum(lax.cummax(total), 0)
  return jnp.concatenate([jnp.zeros(1, log_w.dtype), log_w])
