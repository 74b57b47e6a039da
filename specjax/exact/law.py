"""The law of a verification round, summed exactly over its coins."""

import jax
import jax.numpy as jnp

from specjax.types import Array, Draft, Error
from specjax.verify import walk
from specjax.verify.rule import Rule


def law(rule: Rule, draft: Draft, log_p: Array) -> Array:
  """P(the walk stops at row i, the extra token is v), float[N + 1, V]; sums to 1.

  Row 0 is the root and row n + 1 node n, as in `Decision.log_next`. The dtype follows `log_p`.
  A rule with an acceptance that is no probability has no law: it is NaN, all of it.

  Raises:
    Error: for a coupled rule, which flips no coins, and for what `Rule.decide` refuses.
  """
  if rule.decide is None:
    raise Error("exact.law sums over the coins of a rule, and a coupled rule flips none.")
  draft = jax.tree.map(jnp.asarray, draft)
  decision = rule.decide(draft, log_p)
  if draft.tokens.shape[0] == 0:  # the walk cannot leave the root
    return jnp.exp(decision.log_next)
  accept = jnp.where(draft.valid, decision.accept, 0)
  rounding = 8 * jnp.finfo(accept.dtype).eps
  accept = jnp.where((accept >= 0) & (accept <= 1 + rounding), accept, jnp.nan)
  stops = walk.stops_bottom_up if rule.bottom_up else walk.stops_top_down
  stop = stops(draft.parents, accept) + 0 * accept.sum()  # also where NaN is never reached
  return stop[:, None] * jnp.exp(decision.log_next)
