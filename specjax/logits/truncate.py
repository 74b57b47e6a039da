"""Transforms that cut the tail of a law: top-k, top-p, min-p.

Tokens are ranked by logit, ties by index (lowest first, as argmax breaks them); `select` finds the
end of the shortest sufficient prefix without sorting the vocabulary.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.logits.number import align, number, widen
from specjax.logits.select import heaviest


def top_k(value) -> Partial:
  """Keeps the k most probable tokens, exactly k of them; 0 is off.

  Fan et al. 2018 (section 5, arXiv 1805.04833). Among equal logits the lowest indices stay.

  Args:
    value: scalar or int[...] over the first axes of the logits, >= 0.

  Raises:
    ValueError: k is negative or not an integer.
  """
  def valid(k):
    return (k >= 0) & (k < 2**31) & (k % 1 == 0)

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
