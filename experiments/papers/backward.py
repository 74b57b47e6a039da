"""The shape that block verification and its relatives share, for rules that the library lacks.

A chain is scanned from its end. The whole draft is accepted with probability `whole`; a shorter
prefix with the mass of a residual over some divisor; and the residual is the law of the extra
token.
"""

import jax.numpy as jnp

from specjax.types import Decision


def ratios(draft, log_p):
  """p / q float[gamma] of the drafted tokens; 1 behind the end of the draft."""
  index = jnp.arange(draft.tokens.shape[0])
  found = jnp.exp(log_p[index, draft.tokens] - draft.log_q[index, draft.tokens])
  return jnp.where(draft.valid, found, 1)


def joint(factors):
  """float[gamma + 1]: 1 and the running products of float[gamma]."""
  return jnp.concatenate([jnp.ones(1, factors.dtype), jnp.cumprod(factors)])


def judge(draft, log_p, scale, whole, divisor) -> Decision:
  """Accepts a prefix X^t with probability Z_t / divisor(Z_t, L_t), the whole draft with `whole`.

  Z_t = sum [s p - q]+ and L_t = sum [q - s p]+ are taken after X^t, with s = scale[t].

  Args:
    draft: a chain.
    log_p: float[gamma + 1, V].
    scale: float[gamma], for t = 0 .. gamma - 1.
    whole: float[gamma], for drafts that end with X^1 .. X^gamma.
    divisor: (Z, L) -> float[gamma].
  """
  p, q = scale[:, None] * jnp.exp(log_p[:-1]), jnp.exp(draft.log_q)
  residual = jnp.maximum(p - q, 0)
  gain = residual.sum(-1)
  below = divisor(gain, jnp.maximum(q - p, 0).sum(-1))
  back = jnp.where(below > 0, gain / jnp.where(below > 0, below, 1), 1)
  continues = jnp.append(draft.valid[1:], False)
  some = (gain > 0)[:, None]
  law = jnp.where(some, residual / jnp.where(some, gain[:, None], 1), jnp.exp(log_p[:-1]))
  return Decision(
      jnp.clip(jnp.where(continues, jnp.append(back[1:], 0), whole), 0, 1),
      jnp.where(
          jnp.append(draft.valid, False)[:, None],
          jnp.concatenate([jnp.log(law), log_p[-1:]]), log_p))
