"""Grouped-query attention over a cache, with an arbitrary mask among the new tokens."""

import jax.numpy as jnp

from specjax.models.cache import LayerCache
from specjax.types import Array


def visible(lengths: Array, mask: Array | None, width: int, capacity: int) -> Array:
  """Which cache slots each of the `width` new tokens sees, bool[B, T, S].

  Args:
    lengths: int32[B], tokens of the text, all of them seen.
    mask: bool[B, T, W], which of the W slots behind the text each token sees; None is causal.
    width: T.
    capacity: S.
  """
  place = jnp.arange(capacity)[None] - lengths[:, None]  # [B, S]: place behind the text
  if mask is None:
    return place[:, None] <= jnp.arange(width)[None, :, None]
  slots = mask.shape[2]
  behind = jnp.take_along_axis(mask, place.clip(0, slots - 1)[:, None], axis=2)
  return (place < 0)[:, None] | (behind & (place < slots)[:, None])


def attend(queries: Array, cache: LayerCache, sees: Array) -> Array:
  """Softmax attention of queries [KV, groups, head_dim, B, T], returned in the same shape.

  `sees` bool[B, T, S] is the same for every head. Scores and the softmax are float32.
  """
  kv, groups, dim, batch, width = queries.shape
  # One matrix product for each KV head of each row: its group of query heads times the tokens.
  grouped = queries.transpose(3, 0, 1, 4, 2).reshape(batch, kv, groups * width, dim)
  scores = jnp.einsum("bkmd,bksd->bkms", grouped, cache.keys, preferred_element_type=jnp.float32)
  # The lowest finite number, not -inf: a padding query may see nothing, and the NaN it would get
  # ends up in the cache, where even a weight of zero would spread it.
  bias = jnp.where(sees, 0, jnp.finfo(jnp.float32).min).astype(jnp.float32)
  bias = jnp.broadcast_to(
      bias[:, None, None], (batch, kv, groups, *sees.shape[1:])).reshape(scores.shape)
  scores = scores * dim**-0.5 + bias
  weights = jnp.exp(scores - scores.max(-1, keepdims=True))
  mixed = jnp.einsum(
      "bkms,bksd->bkmd", weights.astype(cache.values.dtype), cache.values,
      preferred_element_type=jnp.float32)
  mixed = mixed / weights.sum(-1, keepdims=True)
  mixed = mixed.reshape(batch, kv, groups, width, dim).transpose(1, 2, 4, 0, 3)
  return mixed.astype(queries.dtype)
