"""Transforms of logits, and how they compose.

A transform maps logits float[..., V] to logits float[..., V], -inf where it excludes a token. It is
a `jax.tree_util.Partial` of a pure function over its numbers, so it travels through `jit` as an
argument: a sweep over temperature, top_k or top_p compiles once. Any function of logits is a
transform too; `chain` and `log_law` take it as it is.

Every transform here may be called as `transform(logits)` or `transform(logits, counts)`, with
`counts` int32[..., V] saying how often each token stands in the text so far. Only functions marked
by `reads_counts` look at them. A row with a NaN or +inf logit never gets a law: no transform here
excludes such a logit and lets the others pass for one.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial

from specjax.logits.number import align, number
from specjax.logits.select import argmax
from specjax.types import Array, Error


def reads_counts(function):
  """Marks a top-level function of (..., logits, counts) whose transforms read the counts."""
  function.reads_counts = True
  return function


def uses_counts(transform) -> bool:
  """Whether any part of the transform reads counts; static, known while tracing."""
  function = getattr(transform, "func", transform)
  if function is _chain:
    return any(uses_counts(part) for part in transform.args[0])
  return getattr(function, "reads_counts", False)


def apply(transform, logits: Array, counts: Array | None = None) -> Array:
  """The transformed logits; a transform that does not read counts is not shown them."""
  return transform(logits, counts) if uses_counts(transform) else transform(logits)


def chain(*transforms) -> Partial:
  """The transforms one after the other, first to last; `chain()` is the identity.

  The order is the caller's: `chain(temperature(t), top_k(k), top_p(p))` takes the nucleus of the
  law that top-k left and renormalised, `chain(top_p(p), temperature(t))` that of the raw law.
  Penalties look at signs and belong in front, as Keskar et al. (2019) have them.
  """
  # Not every part need be a pytree; a bare function becomes one here.
  return Partial(_chain, tuple(t if isinstance(t, Partial) else Partial(t) for t in transforms))


def _chain(transforms, logits, counts=None):
  for transform in transforms:
    logits = apply(transform, logits, counts)
  return logits


def temperature(value) -> Partial:
  """Divides the logits by a temperature; 0 leaves the most probable token alone.

  Args:
    value: scalar or float[...] over the first axes of the logits, finite and >= 0. At 0 (and below
      the smallest normal number) all mass goes to the lowest index among the largest logits.

  Raises:
    Error: the temperature is negative, infinite or NaN.
  """
  def valid(t):
    return (t >= 0) & np.isfinite(t)

  return Partial(_temperature, number("temperature", value, valid, "a finite number >= 0"))


def _temperature(value, logits, counts=None):
  del counts
  value = align(value, logits).astype(logits.dtype)
  greedy = value < jnp.finfo(logits.dtype).tiny
  divisor = jnp.where(greedy, 1, value)
  largest = jnp.max(logits, axis=-1, keepdims=True)
  # A tiny temperature overflows; the law of shifted logits is the same, and their largest is 0.
  shift = jnp.where(jnp.isfinite(largest / divisor), 0, largest)
  index = lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
  excluded = greedy & (index != argmax(logits)[..., None])
  return jnp.where(excluded, -jnp.inf, (logits - shift) / divisor)


def forbid(tokens) -> Partial:
  """Excludes tokens.

  Args:
    tokens: token ids int[n], or a mask bool[V] that is true for the forbidden ones. An id beyond
      the vocabulary forbids nothing.

  Raises:
    Error: an id is negative, `tokens` has another shape or dtype, or (when called) a mask is
      not as long as the vocabulary.
  """
  array = jnp.asarray(tokens, jnp.int32 if np.size(tokens) == 0 else None)
  known = not isinstance(array, jax.core.Tracer)
  is_mask = array.dtype == bool
  if array.ndim != 1 or not (is_mask or jnp.issubdtype(array.dtype, jnp.integer)):
    raise Error(f"forbid takes ids int[n] or a mask bool[V], not {array.dtype}{array.shape}.")
  if known and not is_mask and np.any(np.asarray(array) < 0):
    raise Error(f"forbid: token ids must be >= 0, but the smallest is {array.min()}.")
  return Partial(_forbid, array)


def _forbid(tokens, logits, counts=None):
  del counts
  if tokens.dtype != bool:
    return logits.at[..., tokens].set(-jnp.inf, mode="drop")
  if tokens.shape != logits.shape[-1:]:
    raise Error(f"forbid: a mask bool{tokens.shape} does not fit logits{logits.shape}.")
  return jnp.where(tokens.reshape((1,) * (logits.ndim - 1) + tokens.shape), -jnp.inf, logits)

