"""Reads prompts into a cache, in chunks of one width, so prompt length never causes a compile."""

import jax.numpy as jnp
from jax import lax

from specjax.types import Array, Error, PyTree, Target

CHUNK = 64  # tokens a pass; capacities are multiples of it


def prefill(target: Target, params: PyTree, tokens: Array, lengths: Array) -> PyTree:
  """A cache holding at least the first `lengths - 1` tokens of each row.

  The last token of a prompt is left for the first round, which scores it together with a draft.
  Entries beyond a row's length are garbage that later passes overwrite before they can be seen.

  Args:
    target: the model.
    params: its parameters.
    tokens: int32[B, S], PAD-filled; S is the capacity of the cache and a multiple of CHUNK.
    lengths: int32[B], at least 1.
  """
  batch, capacity = tokens.shape
  if capacity % CHUNK:
    raise Error(f"The capacity of a cache must be a multiple of {CHUNK}, got {capacity}.")
  chunks = (jnp.max(lengths) - 1 + CHUNK - 1) // CHUNK

  def read(state):
    chunk, cache = state
    start = chunk * CHUNK
    new = jnp.maximum(lax.dynamic_slice(tokens, (jnp.int32(0), start), (batch, CHUNK)), 0)
    cache = target.forward(params, cache, new, jnp.full((batch,), start), None, None).cache
    return chunk + 1, cache

  start = (jnp.int32(0), target.init(params, batch, capacity))
  return lax.while_loop(lambda state: state[0] < chunks, read, start)[1]
