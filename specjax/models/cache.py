"""The key-value cache: one pair of arrays a layer, rows of their own length.

The arrays stay separate because a stacked cache, indexed by layer, is copied in every iteration of
a `lax.while_loop`, while separate arrays are updated in place.

The cache does not record how long its rows are: callers pass `lengths`. Slots at or beyond a row's
length hold stale entries that attention never reads, so forgetting a rejected draft costs nothing.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from specjax.models.config import ModelConfig
from specjax.types import Array


class LayerCache(NamedTuple):
  """Keys (already rotated) and values of one layer.

  They are the very operands of attention's batched matrix products: a reshape between the update
  and the product would make XLA keep two copies.
  """

  keys: Array  # float[B, KV, S, head_dim]
  values: Array  # float[B, KV, S, head_dim]


Cache = tuple[LayerCache, ...]


def empty(config: ModelConfig, batch: int, capacity: int) -> Cache:
  """Zeros for `batch` rows of `capacity` tokens."""
  shape = (batch, config.num_kv_heads, capacity, config.head_dim)
  zeros = lambda: jnp.zeros(shape, config.dtype)
  return tuple(LayerCache(zeros(), zeros()) for _ in range(config.num_layers))


def write(slots: Array, entries: Array, start: Array) -> Array:
  """Puts entries [B, KV, T, head_dim] into slots [B, KV, S, head_dim] from start int32[B] on."""
  put = lambda head, new, at: lax.dynamic_update_slice_in_dim(head, new, at, axis=0)
  return jax.vmap(jax.vmap(put))(slots, entries, jnp.broadcast_to(start[:, None], slots.shape[:2]))


def commit(cache: Cache, lengths: Array, path: Array) -> Cache:
  """Keeps an accepted tree path; see `specjax.types.Target`.

  Args:
    cache: Holds the root's entry at slot `lengths[b]` and node n's at `lengths[b] + 1 + n`.
    lengths: int32[B], committed tokens before the root.
    path: int32[B, D], accepted nodes from the root down, PAD where there is none.
  """
  first = lengths + 1
  depths = jnp.arange(path.shape[1], dtype=path.dtype)
  sources = first[:, None] + jnp.where(path >= 0, path, depths[None])

  def keep(slots):
    moved = jnp.take_along_axis(slots, sources[:, None, :, None], axis=2)
    return write(slots, moved, first)

  return jax.tree.map(keep, cache)
