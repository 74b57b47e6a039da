"""Reads prompts into the target and the drafter, chunk by chunk, in one loop.

Chunks of one width: the length of a prompt never causes a compilation. The hidden states that a
drafter asks for exist for one chunk at a time, since those of a long prompt would not fit.
"""

import jax.numpy as jnp
from jax import lax

from specjax.types import Array, Drafter, Error, PAD, Params, PyTree, Target

CHUNK = 64  # tokens a pass; capacities are multiples of it


def prefill(
    target: Target, drafter: Drafter, params: Params, tokens: Array, lengths: Array
) -> tuple[PyTree, PyTree]:
  """The target's cache and the drafter's state after the first `lengths - 1` tokens of each row.

  The last token of a prompt is left for the first round, which scores it together with a draft.
  Cache entries beyond a row's length are garbage that later passes overwrite before they can be
  seen.

  Args:
    target, drafter: the models.
    params: of both.
    tokens: int32[B, S], PAD-filled; S is the capacity of the cache and a multiple of CHUNK.
    lengths: int32[B], at least 1.
  """
  batch, capacity = tokens.shape
  if capacity % CHUNK:
    raise Error(f"The capacity of a cache must be a multiple of {CHUNK}, got {capacity}.")
  read = lengths - 1
  chunks = (read.max() + CHUNK - 1) // CHUNK
  followed = jnp.pad(tokens, ((0, 0), (0, 1)), constant_values=PAD)  # every token has a successor

  def one(carry):
    chunk, cache, state = carry
    at = chunk * CHUNK
    start = jnp.full((batch,), at)
    new = lax.dynamic_slice(followed, (jnp.int32(0), at), (batch, CHUNK + 1))
    output = target.forward(params.target, cache, jnp.maximum(new[:, :-1], 0), start)
    count = jnp.clip(read - at, 0, CHUNK)
    state = drafter.read(params, state, new, output.features, start, count)
    return chunk + 1, output.cache, state

  first = (
      jnp.int32(0), target.init(params.target, batch, capacity),
      drafter.init(params, batch, capacity))
  return lax.while_loop(lambda carry: carry[0] < chunks, one, first)[1:]
