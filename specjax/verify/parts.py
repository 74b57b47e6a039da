"""Pieces that several rules share; all for one row."""

import jax
import jax.numpy as jnp

from specjax.types import Array, Draft


def draft_law(draft: Draft, vocab: int, dtype) -> Array:
  """float[N, V]: the recorded draft laws, or the point masses that `log_q is None` stands for."""
  if draft.log_q is not None:
    return draft.log_q
  return jnp.log(jax.nn.one_hot(draft.tokens, vocab, dtype=dtype))


def at_token(rows: Array, tokens: Array) -> Array:
  """float[N]: rows float[N, V] read at tokens int32[N]. A PAD token reads the last column."""
  return jnp.take_along_axis(rows, tokens[:, None], axis=-1)[:, 0]
