"""Numbers of transforms, rules and formulas: checked when they are made, arrays when used.

A number of a transform is a scalar, or an array whose axes are the *first* axes of the logits that
it meets: float[B] gives each row of float[B, V] its own value, and each row of float[B, T, V] as
well, so one transform serves the drafter's logits and the target's.
"""

from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from specjax.types import Array, Error


def check(name: str, value, valid: Callable, meaning: str) -> None:
  """Raises Error unless `valid` holds for every element of a number or an array of numbers.

  Args:
    name, meaning: for the message, "NAME must be MEANING".
    value: a traced one cannot be looked at and passes.
    valid: float64[...] -> bool[...], false on NaN.
  """
  if isinstance(value, jax.core.Tracer):
    return
  concrete = np.asarray(value)
  numeric = jnp.issubdtype(concrete.dtype, np.number)
  if not numeric or not np.all(valid(concrete.astype(np.float64))):
    raise Error(f"{name} must be {meaning}, but it is {value!r}.")


def number(name: str, value, valid: Callable, meaning: str, dtype=float) -> Array:
  """`value` as an array of the default float type (or int32 for `dtype=int`).

  The dtype is always the same and never weak, so 0 and 0.7 share one compilation.

  Raises:
    Error: as `check`, or a value beyond the dtype.
  """
  check(name, value, valid, meaning)
  dtype = jnp.result_type(float) if dtype is float else jnp.int32
  if not isinstance(value, jax.core.Tracer):
    with np.errstate(over="ignore"):
      if not np.isfinite(np.asarray(value).astype(dtype)).all():
        raise Error(f"{name} must fit {jnp.dtype(dtype)}, but it is {value!r}.")
  return jnp.asarray(value).astype(dtype)


def unrounded(name: str, value, valid: Callable, meaning: str) -> Array | np.ndarray:
  """`value` in float64, or as the JAX array that it is: it takes the precision of its user.

  A rule that was made while 64-bit types are off is proven with the very number that it was given.

  Raises:
    Error: as `check`.
  """
  check(name, value, valid, meaning)
  return value if isinstance(value, jax.Array) else np.asarray(value, np.float64)


def align(value: Array, logits: Array) -> Array:
  """`value` [...] shaped to broadcast against `logits` [..., V], first axis to first axis."""
  missing = logits.ndim - value.ndim
  # A longer axis would make rows that are not there.
  fits = all(size in (1, rows) for size, rows in zip(value.shape, logits.shape))
  if missing < 1 or not fits:
    raise Error(
        f"A number of shape {value.shape} does not fit logits of shape {logits.shape}: its axes "
        "are the first axes of the logits, whose last axis is the vocabulary."
    )
  return value.reshape(value.shape + (1,) * missing)


def widen(logits: Array) -> Array:
  """float32 or float64: narrower floats hold neither a law nor a sum over a vocabulary.

  Raises:
    Error: logits that are not floats.
  """
  if not jnp.issubdtype(logits.dtype, jnp.floating):
    raise Error(f"logits must be float[..., V], got {logits.dtype}{logits.shape}.")
  return logits.astype(jnp.float32) if jnp.finfo(logits.dtype).bits < 32 else logits
