"""The Llama-family decoder in flax linen, and the `Target` records built on it.

Parameters are the plain nested dict inside linen's `{'params': ...}`, every matrix [out, in], with
an axis of its own for whatever devices can share out (KV heads with their query heads, features of
the MLP), G = heads / KV query heads in a group:

  embedding [V, H]
  layer_i/  attn_norm [H]   qkv [KV, G + 2, head_dim, H]   out [H, heads * head_dim]
            mlp_norm [H]    gate_up [2, mlp, H]            down [H, mlp]
            qkv_bias [KV, G + 2, head_dim], out_bias [H], q_norm, k_norm [head_dim]
              where the config asks
  final_norm [H]
  head [V, H]   unless the embedding is tied

Of the G + 2 in `qkv` the last two are the key and the value.
"""

import functools
import math

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.models import attention, cache as cache_lib, rope, window
from specjax.models.config import ModelConfig
from specjax.models.layers import product, project, rms_norm
from specjax.types import Array, Error, Output, PyTree, Static, Target

_scaled = nn.initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=1, out_axis=0)


def _matrix(key, shape, dtype):
  """Initial weights [..., in] of variance 1 / in."""
  return _scaled(key, (math.prod(shape[:-1]), shape[-1]), dtype).reshape(shape)


class Block(nn.Module):
  """One decoder layer on columns [H, B * T]; reads and extends its own layer's cache."""

  config: ModelConfig

  @nn.compact
  def __call__(self, x, layer_cache, start, rotation, sees):
    norm = self._norm("attn_norm", self.config.hidden_size)
    y, layer_cache = self._attention(norm(x), layer_cache, start, rotation, sees)
    x = x + y
    norm = self._norm("mlp_norm", self.config.hidden_size)
    return x + self._mlp(norm(x)), layer_cache

  def _norm(self, name, size, axis=0):
    scale = self.param(name, nn.initializers.ones, (size,), self.config.dtype)
    return lambda x: rms_norm(x, scale, self.config.norm_eps, axis)

  def _weights(self, name, *shape, bias=False):
    weights = self.param(name, _matrix, shape, self.config.dtype)
    if not bias:
      return weights, None
    zeros = nn.initializers.zeros
    return weights, self.param(f"{name}_bias", zeros, shape[:-1], self.config.dtype)

  def _attention(self, x, layer_cache, start, rotation, sees):
    c = self.config
    groups = c.num_heads // c.num_kv_heads
    weights, bias = self._weights(
        "qkv", c.num_kv_heads, groups + 2, c.head_dim, c.hidden_size, bias=c.qkv_bias)
    heads = project(weights, x, bias)
    heads = heads.reshape(*heads.shape[:-1], *sees.shape[:2])  # [KV, G + 2, head_dim, B, T]
    q, k, v = heads[:, :groups], heads[:, groups], heads[:, groups + 1]
    if c.qk_norm:
      q = self._norm("q_norm", c.head_dim, axis=2)(q)
      k = self._norm("k_norm", c.head_dim, axis=1)(k)
    entries = cache_lib.LayerCache(rope.rotate(k, rotation), v)
    layer_cache = jax.tree.map(
        lambda slots, new: cache_lib.write(slots, new.transpose(2, 0, 3, 1), start),
        layer_cache, entries)
    mixed = attention.attend(rope.rotate(q, rotation), layer_cache, sees)
    rows = c.num_heads * c.head_dim
    weights, bias = self._weights("out", c.hidden_size, rows, bias=c.out_bias)
    return project(weights, mixed.reshape(rows, -1), bias), layer_cache

  def _mlp(self, x):
    c = self.config
    gate, up = project(self._weights("gate_up", 2, c.mlp_size, c.hidden_size)[0], x)
    return project(self._weights("down", c.hidden_size, c.mlp_size)[0], nn.silu(gate) * up)


class Transformer(nn.Module):
  """The first `layers` layers of the decoder, the final norm and the head."""

  config: ModelConfig
  layers: int
  captures: tuple[int, ...] = ()

  @nn.compact
  def __call__(self, tokens, cache, lengths, depths=None, mask=None) -> Output:
    c = self.config
    table = (c.vocab_size, c.hidden_size)
    embedding = self.param("embedding", nn.initializers.normal(0.02), table, c.dtype)
    batch, width = tokens.shape
    sees = attention.visible(lengths, mask, width, cache[0].keys.shape[2])
    start = lengths if mask is None else lengths + mask.shape[2] - width
    depths = jnp.arange(width, dtype=jnp.int32)[None] if depths is None else depths
    rotation = rope.rotation(c, lengths[:, None] + depths)

    x = embedding[tokens.reshape(-1)].T
    states, layer_caches = [x], list(cache)
    for i in range(self.layers):
      x, layer_caches[i] = Block(c, name=f"layer_{i}")(x, cache[i], start, rotation, sees)
      states.append(x)
    scale = self.param("final_norm", nn.initializers.ones, (c.hidden_size,), c.dtype)
    x = states[-1] = rms_norm(x, scale, c.norm_eps)  # Hugging Face too lists the normed one
    head = embedding if c.tied_head else self.param("head", _matrix, table, c.dtype)
    logits = _rows(product(head, x)).reshape(batch, width, -1)
    features = [states[i].T.reshape(batch, width, -1) for i in self.captures]
    return Output(logits, jnp.stack(features, 2) if features else None, tuple(layer_caches))


def _rows(logits: Array) -> Array:
  """[V, columns] -> [columns, V].

  Without the barrier XLA merges the transposition into the product, and a CPU then falls to a
  kernel that takes ten times as long.
  """
  return jax.lax.optimization_barrier(logits).T


def target(config: ModelConfig, captures: tuple[int, ...] = ()) -> Target:
  """The whole decoder as a `Target`; equal arguments give the same record, so jit never retraces.

  Args:
    config: The shape of the model.
    captures: Hidden states to return as `Output.features`, float[B, T, C, H] in the model's dtype,
      counted as Hugging Face's `hidden_states`: 0 is the embedding, i the output of layer i - 1,
      and num_layers the last layer's output after the final norm.

  Raises:
    Error: a captured id is not in 0 .. num_layers.
  """
  wrong = [i for i in captures if not 0 <= i <= config.num_layers]
  if wrong:
    raise Error(
        f"captures must be hidden states of the model, 0..{config.num_layers}, got {wrong}.")
  return _target(config, config.num_layers, tuple(captures))


def early_exit(config: ModelConfig, layers: int) -> Target:
  """The first `layers` layers, final norm and head, over the whole decoder's params and cache.

  The cache entries of the other layers pass through untouched. Drafts for self-speculation
  (Zhang et al. 2023, arXiv 2309.08168; Elhoushi et al. 2024, arXiv 2404.16710).

  Raises:
    Error: `layers` is not in 1 .. num_layers.
  """
  if not 1 <= layers <= config.num_layers:
    raise Error(f"early_exit needs layers in 1..{config.num_layers}, got {layers}.")
  return _target(config, layers, ())


@functools.lru_cache(maxsize=None)
def _target(config: ModelConfig, layers: int, captures: tuple[int, ...]) -> Target:
  model = Transformer(config, layers, captures)
  return Target(
      init=Partial(Static(_init, model)), forward=Partial(Static(_forward, model)),
      commit=Partial(Static(_commit, model)), vocab_size=config.vocab_size,
      max_length=config.max_length, captures=captures)


def _init(model, params, batch, capacity):
  del params  # an empty cache depends on the shape of the model alone
  return cache_lib.empty(model.config, batch, capacity)


def _forward(model, params, cache, tokens, lengths, depths=None, mask=None):
  window.slots(tokens, depths, mask, cache[0].keys.shape[2])
  return model.apply({"params": params}, tokens, cache, lengths, depths, mask)


def _commit(model, cache, lengths, path):
  moved = cache_lib.commit(cache[:model.layers], lengths, path)
  return moved + cache[model.layers:]


def init_params(config: ModelConfig, key: Array) -> PyTree:
  """Random parameters in the layout above; the key is consumed."""
  tokens = jnp.zeros((1, 1), jnp.int32)
  model = Transformer(config, config.num_layers)
  cache = cache_lib.empty(config, 1, 1)
  return model.init(key, tokens, cache, jnp.zeros(1, jnp.int32))["params"]


def param_shapes(config: ModelConfig) -> PyTree:
  """The layout as a tree of `jax.ShapeDtypeStruct`, against which a loader checks its tensors."""
  return jax.eval_shape(functools.partial(init_params, config), jax.random.key(0))
