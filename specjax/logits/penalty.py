"""Penalties on tokens that the text already holds, and the counts that they read.

Every penalty is called with `counts` int32[..., V], the occurrences of each token in the text so
far (`token_counts`), drafted tokens included. Without counts it raises Error.
"""

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from specjax.logits.number import align, number
from specjax.logits.transform import reads_counts
from specjax.types import Array, Error


def token_counts(tokens: Array, vocab_size: int) -> Array:
  """int32[..., V]: how often each token stands in int32[..., S]; PAD is not counted."""
  # A negative index would wrap around to the last tokens; one past the end is dropped.
  index = jnp.where(tokens < 0, vocab_size, tokens)
  def count(row):
    return jnp.zeros(vocab_size, jnp.int32).at[row].add(1, mode="drop")

  return jnp.vectorize(count, signature="(s)->(v)")(index)


def repetition_penalty(value) -> Partial:
  """Divides positive logits, and multiplies negative ones, of tokens that have occurred.

  Keskar et al. 2019 (CTRL, section 4.1, arXiv 1909.05858), with the case of negative logits that
  its public code adds. 1 is off.

  Args:
    value: scalar or float[...] over the first axes of the logits, finite and > 0.

  Raises:
    Error: the penalty is not finite and positive.
  """
  def valid(r):
    return (r > 0) & np.isfinite(r)

  return Partial(_repetition, number("repetition_penalty", value, valid, "a finite number > 0"))


@reads_counts
def _repetition(value, logits, counts=None):
  value = align(value, logits).astype(logits.dtype)
  penalised = jnp.where(logits > 0, logits / value, logits * value)
  return jnp.where(_required("repetition_penalty", counts) > 0, penalised, logits)


def presence_penalty(value) -> Partial:
  """Subtracts a constant from the logits of tokens that have occurred; 0 is off.

  Args:
    value: scalar or float[...] over the first axes of the logits, finite; negative values reward.

  Raises:
    Error: the penalty is infinite or NaN.
  """
  return Partial(_presence, number("presence_penalty", value, np.isfinite, "a finite number"))


@reads_counts
def _presence(value, logits, counts=None):
  value = align(value, logits).astype(logits.dtype)
  return jnp.where(_required("presence_penalty", counts) > 0, logits - value, logits)


def frequency_penalty(value) -> Partial:
  """Subtracts `value` times its number of occurrences from each token's logit; 0 is off.

  Args:
    value: scalar or float[...] over the first axes of the logits, finite; negative values reward.

  Raises:
    Error: the penalty is infinite or NaN.
  """
  return Partial(_frequency, number("frequency_penalty", value, np.isfinite, "a finite number"))


@reads_counts
def _frequency(value, logits, counts=None):
  counts = _required("frequency_penalty", counts).astype(logits.dtype)
  return logits - align(value, logits).astype(logits.dtype) * counts


def _required(name, counts):
  if counts is None:
    raise Error(f"{name} needs counts int32[..., V], the occurrences of each token so far.")
  return counts
