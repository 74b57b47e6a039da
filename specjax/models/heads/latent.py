"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1)."""

import dataclasses

import flax.linen as nn
import jax.numpy as jnp

from specjax.models import rope
from specjax.models.cache import LayerCache
from specjax.models.config import ModelConfig
from specjax.models.heads import parts
from specjax.types import Array


@dataclasses.dataclass(frozen=True)
class LatentConfig:
  """Ranks, and the features of a head: `nope` without a position and `rope` with one."""

  q_rank: int | None  # None: queries are projected at once
  kv_rank: int
  nope: int
  rope: int
  value: int  # at most nope + rope


class LatentAttention(nn.Module):
  """Keys and values from one latent vector, and one rotated key that all heads share.

  The cache holds the keys and values of every head, values filled up with zeros to the size of
  keys, so that `attention.attend` serves here too.
  """

  config: ModelConfig  # num_kv_heads = num_heads, head_dim = nope + rope
  latent: LatentConfig

  @nn.compact
  def __call__(
      self, x: Array, cache: LayerCache, window: parts.Window) -> tuple[Array, LayerCache]:
    c, latent = self.config, self.latent
    shape = c.num_heads, -1, *window.sees.shape[:2]
    keys, values = self._keys_and_values(x, shape, window)
    fill = ((0, 0), (0, c.head_dim - latent.value), (0, 0), (0, 0))
    cache = parts.remember(cache, keys, jnp.pad(values, fill), window.start)
    queries = self._queries(x).reshape(shape)
    queries = jnp.concatenate(
        [queries[:, :latent.nope], _rotate(queries[:, latent.nope:], window.rotation)], axis=1)
    mixed = parts.attend(queries, cache, window.sees)[:, :latent.value]
    out = self._linear("out", c.num_heads * latent.value, c.hidden_size)
    return out(mixed.reshape(-1, x.shape[1])), cache

  def _linear(self, name: str, inputs: int, outputs: int) -> parts.Linear:
    return parts.Linear(inputs, outputs, self.config.dtype, name=name)

  def _queries(self, x):
    c, rank = self.config, self.latent.q_rank
    if rank is None:
      return self._linear("q", c.hidden_size, c.num_heads * c.head_dim)(x)
    x = parts.norm(c, rank, name="q_norm")(self._linear("q_in", c.hidden_size, rank)(x))
    return self._linear("q", rank, c.num_heads * c.head_dim)(x)

  def _keys_and_values(self, x, shape, window):
    c, latent = self.config, self.latent
    both = self._linear("kv_in", c.hidden_size, latent.kv_rank + latent.rope)(x)
    compressed, shared = both[:latent.kv_rank], both[latent.kv_rank:]
    compressed = parts.norm(c, latent.kv_rank, name="kv_norm")(compressed)
    kv = self._linear("kv", latent.kv_rank, c.num_heads * (latent.nope + latent.value))
    heads = kv(compressed).reshape(shape)
    shared = _rotate(shared.reshape(1, *shape[1:]), window.rotation)
    shared = jnp.broadcast_to(shared, (c.num_heads, *shared.shape[1:]))
    return jnp.concatenate([heads[:, :latent.nope], shared], axis=1), heads[:, latent.nope:]


def _rotate(x: Array, by: rope.Rotation) -> Array:
  """Rotates heads [heads, D, B, T] whose features 2 i and 2 i + 1 are the sides of a plane."""
  halves = x.reshape(x.shape[0], -1, 2, *x.shape[2:])
  return rope.rotate(jnp.concatenate([halves[:, :, 0], halves[:, :, 1]], axis=1), by)
