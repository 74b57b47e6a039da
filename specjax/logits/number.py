"""The numbers inside transforms: checked when they are made, arrays when they are used.

A number is a scalar, or an array whose axes are the *first* axes of the logits that it meets:
float[B] gives each row of float[B, V] its own value, and each row of float[B, T, V] as well, so one
transform serves the drafter's logits and the target's.
"""

import jax
import jax.numpy as jnp
import numpy as np

from specjax.types import Array, Error


def number(name: str, value, valid, meaning: str, dtype=float) -> Array:
  """`value` as an array of the default float type (or int32 for `dtype=int`).

  The dtype is always the same and never weak, so 0 and 0.7 share one compilation. Raises Error
  unless `valid` holds for every element; it sees float64 and must be false on NaN. A traced value
  cannot be looked at and passes unchecked.
  """
  dtype = jnp.result_type(float) if dtype is float else jnp.int32
  if not isinstance(value, jax.core.Tracer):
    concrete = np.asarray(value)
    if not jnp.issubdtype(concrete.dtype, np.number) or not np.all(valid(concrete.astype(float))):
      raise Error(f"{name} must be {meaning}, but it is {value!r}.")
    with np.errstate(over="ignore"):
      if not np.isfinite(concrete.astype(dtype)).all():
        raise Error(f"{name} must fit {jnp.dtype(dtype)}, but it is {value!r}.")
  return jnp.asarray(value).astype(dtype)


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
