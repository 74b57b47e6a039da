"""The pieces that the networks of drafters are made of, on columns [features, B * T]."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from specjax.models import attention, cache as cache_lib, rope, window as window_lib
from specjax.models.cache import LayerCache
from specjax.models.config import ModelConfig
from specjax.models.layers import product, project, rms_norm
from specjax.types import Array

matrix = nn.initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=-1, out_axis=-2)


class Window(NamedTuple):
  """Where the T new tokens of each row stand, and what they see."""

  start: Array  # int32[B]: the slot of the first
  rotation: rope.Rotation  # of their positions, [rotated head dims / 2, B, T]
  sees: Array  # bool[B, T, S]


def window(
    config: ModelConfig, capacity: int, tokens: Array, lengths: Array, depths: Array | None,
    mask: Array | None) -> Window:
  """The window of tokens int32[B, T] behind the text, by the conventions of `types.ForwardFn`."""
  width = tokens.shape[1]
  ahead = window_lib.slots(tokens, depths, mask, capacity) - width
  depths = jnp.arange(width, dtype=jnp.int32)[None] if depths is None else depths
  return Window(
      lengths + ahead, rope.rotation(config, lengths[:, None] + depths),
      attention.visible(lengths, mask, width, capacity))


def columns(x: Array) -> Array:
  """[B, T, H] -> [H, B * T]."""
  return x.reshape(-1, x.shape[-1]).T


def rows(x: Array, batch: int) -> Array:
  """[H, B * T] -> [B, T, H].

  Without the barrier XLA merges the transposition into the product, and a CPU then falls to a
  kernel that takes ten times as long.
  """
  return jax.lax.optimization_barrier(x).T.reshape(batch, -1, x.shape[0])


def logits(head: Array, x: Array, batch: int) -> Array:
  """float32[B, T, V] of columns [H, B * T] by a head [V, H]."""
  return rows(product(head, x), batch)


class Norm(nn.Module):
  """RMSNorm along `axis`; a zero-centred one multiplies by 1 + scale."""

  size: int
  eps: float
  dtype: str
  axis: int = 0
  zero_centred: bool = False

  @nn.compact
  def __call__(self, x):
    start = nn.initializers.zeros if self.zero_centred else nn.initializers.ones
    scale = self.param("scale", start, (self.size,), self.dtype)
    return rms_norm(x, scale + 1 if self.zero_centred else scale, self.eps, self.axis)


def norm(config: ModelConfig, size: int | None = None, **options) -> Norm:
  """A norm of the hidden size, or of `size`, with the eps and dtype of the config."""
  return Norm(size or config.hidden_size, config.norm_eps, config.dtype, **options)


class Linear(nn.Module):
  """A matrix [out, in], and a bias [out] if asked for."""

  inputs: int
  outputs: int
  dtype: str
  bias: bool = False

  @nn.compact
  def __call__(self, x):
    weights = self.param("weights", matrix, (self.outputs, self.inputs), self.dtype)
    bias = None
    if self.bias:
      bias = self.param("bias", nn.initializers.zeros, (self.outputs,), self.dtype)
    return project(weights, x.astype(self.dtype), bias)


def remember(cache: LayerCache, keys: Array, values: Array, start: Array) -> LayerCache:
  """Writes keys and values float[KV, head_dim, B, T] into the slots from start int32[B] on."""
  put = lambda slots, new: cache_lib.write(slots, new.transpose(2, 0, 3, 1), start)
  return LayerCache(put(cache.keys, keys), put(cache.values, values))


def attend(queries: Array, cache: LayerCache, sees: Array) -> Array:
  """`attention.attend` for queries [heads, head_dim, B, T] in the order of checkpoints."""
  grouped = queries.reshape(cache.keys.shape[1], -1, *queries.shape[1:])
  return attention.attend(grouped, cache, sees).reshape(queries.shape)


def rotate(x: Array, by: rope.Rotation) -> Array:
  """Rotates the first features of heads [heads, head_dim, B, T], as many as `by` has planes for."""
  turned = 2 * by.cos.shape[0]
  if turned == x.shape[1]:
    return rope.rotate(x, by)
  return jnp.concatenate([rope.rotate(x[:, :turned], by), x[:, turned:]], axis=1)


class Attention(nn.Module):
  """Grouped-query attention whose input may be wider than the hidden size.

  Queries and keys with values are separate matrices, because a row that is only attended to
  (`attend_to`) needs no query.

  With `gated`, each head's query rows are followed by as many gate rows, and what the head mixes is
  multiplied by their sigmoid (Qwen3-Next).
  """

  config: ModelConfig
  inputs: int
  gated: bool = False
  zero_centred: bool = False

  def setup(self):
    c = self.config
    width, kv_width = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
    self.q = Linear(self.inputs, width * (1 + self.gated), c.dtype, c.qkv_bias)
    self.kv = Linear(self.inputs, 2 * kv_width, c.dtype, c.qkv_bias)
    self.out = Linear(width, c.hidden_size, c.dtype, c.out_bias)
    if c.qk_norm:
      self.q_norm = norm(c, c.head_dim, axis=1, zero_centred=self.zero_centred)
      self.k_norm = norm(c, c.head_dim, axis=1, zero_centred=self.zero_centred)

  def attend_to(self, x: Array, cache: LayerCache, start: Array, by: rope.Rotation) -> LayerCache:
    """Writes the keys and values of columns x [inputs, B * T] from slot `start[b]` on."""
    c = self.config
    heads = self.kv(x).reshape(2, c.num_kv_heads, c.head_dim, *by.cos.shape[1:])
    keys = self.k_norm(heads[0]) if c.qk_norm else heads[0]
    return remember(cache, rotate(keys, by), heads[1], start)

  def __call__(self, x: Array, cache: LayerCache, window: Window) -> tuple[Array, LayerCache]:
    """Columns [inputs, B * T] to columns [H, B * T]; their keys and values join the cache."""
    c = self.config
    cache = self.attend_to(x, cache, window.start, window.rotation)
    queries = self.q(x).reshape(c.num_heads, -1, *window.sees.shape[:2])
    queries, gates = queries[:, :c.head_dim], queries[:, c.head_dim:]
    queries = self.q_norm(queries) if c.qk_norm else queries
    mixed = attend(rotate(queries, window.rotation), cache, window.sees)
    mixed = mixed * nn.sigmoid(gates) if self.gated else mixed
    return self.out(mixed.reshape(-1, x.shape[1])), cache


class Mlp(nn.Module):
  """SwiGLU (Shazeer 2020, arXiv 2002.05202)."""

  hidden: int
  size: int
  dtype: str

  @nn.compact
  def __call__(self, x):
    gate, up = jnp.split(Linear(self.hidden, 2 * self.size, self.dtype, name="gate_up")(x), 2)
    return Linear(self.size, self.hidden, self.dtype, name="down")(nn.silu(gate) * up)


class Layer(nn.Module):
  """A decoder layer around any attention and feed-forward part.

  `normed` is false for the first layer of EAGLE-1, which has no norm before its attention.
  """

  config: ModelConfig
  attention: nn.Module
  mlp: nn.Module
  normed: bool = True
  zero_centred: bool = False

  @nn.compact
  def __call__(self, x: Array, cache: LayerCache, window: Window) -> tuple[Array, LayerCache]:
    place = dict(zero_centred=self.zero_centred)
    before = norm(self.config, name="attn_norm", **place)(x) if self.normed else x
    y, cache = self.attention(before, cache, window)
    x = x + y
    return x + self.mlp(norm(self.config, name="mlp_norm", **place)(x)), cache


def layer(config: ModelConfig, name: str | None = None, normed: bool = True) -> Layer:
  """An ordinary layer of the config's shape."""
  # Without a parent they are adopted by the layer, not by the module that this is called in.
  attention_part = Attention(config, config.hidden_size, parent=None)
  mlp_part = Mlp(config.hidden_size, config.mlp_size, config.dtype, parent=None)
  return Layer(config, attention_part, mlp_part, normed=normed, name=name)
