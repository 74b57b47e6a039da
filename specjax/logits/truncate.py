"""Transforms that cut the tail of a law: top-k, top-p, min-p.

Nothing here sorts the vocabulary. Tokens are ranked by logit, ties by index (lowest first, as
argmax breaks them), and the end of the shortest sufficient prefix is found by bisection.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.logits.number import align, number, widen
from specjax.types import Array


def top_k(value) -> Partial:
  """Keeps the k most probable tokens, exactly k of them; 0 is off.

  Fan et al. 2018 (section 5, arXiv 1805.04833). Among equal logits the lowest indices stay.

  Args:
    value: scalar or int[...] over the first axes of the logits, >= 0.

  Raises:
    ValueError: k is negative or not an integer.
  """
  valid = lambda k: (k >= 0) & (k < 2**31) & (k % 1 == 0)
  return Partial(_top_k, number("top_k", value, valid, "an integer >= 0 (0 is off)", int))


def _top_k(value, logits, counts=None):
  del counts
  value = align(value, logits)
  everything = jnp.iinfo(jnp.int32).max
  target = jnp.where(value < 1, everything, value)
  keep = heaviest(logits, jnp.int32(1), jnp.int32(logits.shape[-1]), target)
  return jnp.where(keep, logits, -jnp.inf)


def top_p(value) -> Partial:
  """Keeps the nucleus, the fewest most probable tokens whose mass reaches p; 1 is off.

  Holtzman et al. 2020 (section 3.1, arXiv 1904.09751). The token that crosses p stays, so at least
  one does; among equal logits the lowest indices stay. Mass is summed in the dtype of the logits
  (at least float32), which decides between sets whose mass is within about 1e-7 of p.

  Args:
    value: scalar or float[...] over the first axes of the logits, in (0, 1].

  Raises:
    ValueError: p lies outside (0, 1].
  """
  return Partial(_top_p, number("top_p", value, lambda p: (p > 0) & (p <= 1), "in (0, 1]"))


def _top_p(value, logits, counts=None):
  del counts
  wide = widen(lax.stop_gradient(logits))
  value = align(value, logits).astype(wide.dtype)
  weights = jnp.exp(wide - jnp.max(wide, axis=-1, keepdims=True))
  # The largest weight is 1, so a target that is positive, however small, keeps one token.
  total = jnp.sum(weights, axis=-1, keepdims=True)
  target = jnp.maximum(value * total, jnp.finfo(wide.dtype).tiny)
  keep = heaviest(wide, weights, total, jnp.where(value < 1, target, jnp.inf))
  return jnp.where(keep, logits, -jnp.inf)


def min_p(value) -> Partial:
  """Keeps the tokens at least `value` times as probable as the most probable one; 0 is off.

  Nguyen et al. 2024 (section 3, arXiv 2407.01082). Tokens on the threshold stay.

  Args:
    value: scalar or float[...] over the first axes of the logits, in [0, 1].

  Raises:
    ValueError: the value lies outside [0, 1].
  """
  return Partial(_min_p, number("min_p", value, lambda m: (m >= 0) & (m <= 1), "in [0, 1]"))


def _min_p(value, logits, counts=None):
  del counts
  ratio = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
  return jnp.where(ratio < align(value, logits).astype(logits.dtype), -jnp.inf, logits)


def heaviest(logits: Array, weights: Array, total: Array, target: Array) -> Array:
  """bool[..., V]: the shortest prefix of the ranking whose weight reaches the target.

  Args:
    logits: float[..., V], ranked from the largest down, ties by index.
    weights: >= 0, of the shape of `logits` or a scalar.
    total: [..., 1] or a scalar, the sum of the weights.
    target: [..., 1], > 0. A row whose total does not reach it is kept whole, and so is a NaN.
  """
  enough = jnp.broadcast_to(total >= target, logits.shape[:-1] + (1,))
  # A transform that is off in every row, the common case, costs nothing.
  return lax.cond(
      jnp.any(enough),
      lambda: _prefix(logits, weights, target) | ~enough | jnp.isnan(logits),
      lambda: jnp.ones(logits.shape, bool),
  )


def _prefix(logits, weights, target):
  """`heaviest` of the rows whose total reaches the target."""
  keys, size = _order(logits), logits.shape[-1]
  index = lax.broadcasted_iota(jnp.uint32, keys.shape, keys.ndim - 1)

  def reaches(mask):
    # Rounding is monotone, so a sum over a fixed reduction tree only grows with the set.
    return jnp.sum(jnp.where(mask, weights, 0), -1, weights.dtype, keepdims=True) >= target

  lowest, highest = jnp.min(keys, -1, keepdims=True), jnp.max(keys, -1, keepdims=True)
  threshold = _largest(lowest, highest, lambda t: reaches(keys >= t))
  above, tied = keys > threshold, keys == threshold
  # Tokens tied at the threshold go from the highest index down; a lone one is needed anyway.
  several = jnp.sum(tied, -1, keepdims=True) > 1
  surplus = _largest(
      jnp.zeros_like(threshold, jnp.uint32),
      jnp.where(several, jnp.uint32(size - 1), jnp.uint32(0)),
      lambda n: reaches(above | (tied & (index < size - n))),
  )
  return above | (tied & (index < size - surplus))


def _largest(low: Array, high: Array, holds) -> Array:
  """The largest n in [low, high] with holds(n); `holds` is monotone and true at `low`.

  Rows whose bounds have met cost nothing: the loop runs as long as the widest row needs, at most
  once for each bit.
  """

  def halve(bounds):
    low, high = bounds
    middle = high - ((high - low) >> jnp.ones_like(low))
    go_up = holds(middle) | (middle == low)
    return jnp.where(go_up, middle, low), jnp.where(go_up, high, middle - 1)

  return lax.while_loop(lambda bounds: jnp.any(bounds[0] < bounds[1]), halve, (low, high))[0]


def _order(logits: Array) -> Array:
  """Unsigned integers in the order of the floats: equal for equal floats, and in no other case.

  Zeros of both signs and subnormal numbers count as one value, as they do for XLA's comparisons
  (and so for argmax) on CPU.
  """
  info = jnp.finfo(logits.dtype)
  unsigned = jnp.dtype(f"uint{info.bits}")
  sign = jnp.array(1 << (info.bits - 1), unsigned)
  bits = lax.bitcast_convert_type(logits, unsigned)
  smallest = lax.bitcast_convert_type(jnp.array(info.tiny, logits.dtype), unsigned)
  bits = jnp.where((bits & ~sign) < smallest, jnp.zeros_like(bits), bits)
  return jnp.where(bits >= sign, ~bits, bits | sign)
