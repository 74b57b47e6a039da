"""How many tokens coupled rules accept, in closed form.

Read Gumbel noise as an exponential race: each of s paths has clocks E(k, x) ~ Exp(1), path k drafts
the x with the smallest E(k, x) / q(x), and the target takes the x with the smallest
min_k E(k, x) / p(x). Suppose the target takes y at time t, on the clock of path k*. That time is
Exp(s) and independent of y, which has the law p: the rule is lossless. All other clocks are then
known to exceed t p(x) and are fresh beyond it, so given (y, t) the paths agree independently:

  path k*      with probability exp(-t h(r_y)), where r = p / q and h(v) = sum_x q(x) [v - r_x]+
  the others   each with probability g_y(t) = t q(y) integral over v > r_y of exp(-t h(v)) dv.

As h is piecewise linear, g_y is a sum of exponentials, and every expectation over t is a sum too.
"""

import math

import jax
import jax.numpy as jnp

from specjax.exact import prefixes
from specjax.types import Array


def agreement(p: Array, q: Array, paths: int) -> Array:
  """P(the target takes y, exactly m of s paths have drafted y), float[s, V] for m = 1 .. s.

  Args:
    p: float[V], the target's law.
    q: float[V], the law of every path.
    paths: s (static); the time grows as V ** s.
  """
  start, weights, rates = _arrivals(p, q)
  def winner(power, shift):
    return _moment(paths, power, shift, weights, rates)

  rows = []
  for agree in range(1, paths + 1):
    with_winner = _expect(paths, agree - 1, lambda power: winner(power, start))
    without = _expect(paths, agree, lambda power: winner(power, 0 * start) - winner(power, start))
    rows.append(p * (with_winner + without))
  # A token that is never drafted has no finite r; one that p excludes is never taken.
  return jnp.where((p > 0) & (q > 0), jnp.stack(rows), 0)


def accepted(log_p: Array, log_q: Array, paths: int = 1) -> Array:
  """E[tau] float[] of `list_gumbel` for K paths of D tokens; of `gumbel` for one.

  Args:
    log_p: float[M, V] over the texts of at most D tokens.
    log_q: float[M, V], the law that every path draws from.
    paths: K (static).
  """
  vocab = log_p.shape[1]
  p, q = jnp.exp(log_p), jnp.exp(log_q)
  depth = prefixes.depth_of(vocab, log_p.shape[0])
  ahead = jnp.zeros((paths, vocab**depth), log_p.dtype)  # E[tau] from here on while m paths agree
  for length in reversed(range(depth)):
    here = prefixes.level(vocab, length)
    gain = 1 + ahead.reshape(paths, -1, vocab)
    ahead = jnp.stack([
        (jax.vmap(lambda p, q: agreement(p, q, agreeing), out_axes=1)(p[here], q[here])
         * gain[:agreeing]).sum((0, 2))
        for agreeing in range(1, paths + 1)])
  return ahead[paths - 1, 0]


def _arrivals(p: Array, q: Array) -> tuple[Array, Array, Array]:
  """h(r_y) float[V], and g_y(t) = sum_j weights[y, j] exp(-t rates[j]), both over tokens j."""
  drafted = q > 0
  ratio = jnp.where(drafted, p / jnp.where(drafted, q, 1), jnp.inf)
  order = jnp.argsort(ratio)
  q_sorted = q[order]
  mass = jnp.cumsum(q_sorted)  # the slope of h beyond each r
  known = q_sorted > 0
  gaps = jnp.where(known[1:], jnp.diff(jnp.where(known, ratio[order], 0)), 0)
  rates = jnp.append(0, jnp.cumsum(mass[:-1] * gaps))  # h at each r
  inverse = jnp.where(known, 1 / jnp.where(known, mass, 1), 0)
  steps = jnp.where(known, inverse - jnp.append(0, inverse[:-1]), 0)
  rank = jnp.argsort(order)
  places = jnp.arange(p.shape[0])
  weights = jnp.where(
      places[None, :] == rank[:, None], inverse[None, :],
      jnp.where(places[None, :] > rank[:, None], steps[None, :], 0)) * q[:, None]
  return rates[rank], weights, rates


def _expect(paths: int, agree: int, moment) -> Array:
  """E[C(n, a) g^a (1 - g)^(n - a)] for the n = s - 1 paths that did not win; 0 if a > n."""
  others = paths - 1
  return sum(
      (-1) ** extra * math.comb(others, agree) * math.comb(others - agree, extra)
      * moment(agree + extra) for extra in range(others - agree + 1))


def _moment(paths: int, power: int, shift: Array, weights: Array, rates: Array) -> Array:
  """E[exp(-t shift_y) g_y(t)^power] float[V] for t ~ Exp(s), the powers of g multiplied out."""
  weight, rate = jnp.ones_like(shift)[:, None], shift[:, None]
  for _ in range(power):
    weight = (weight[:, :, None] * weights[:, None, :]).reshape(shift.shape[0], -1)
    rate = (rate[:, :, None] + rates[None, None, :]).reshape(shift.shape[0], -1)
  return (weight * paths / (paths + rate)).sum(-1)
