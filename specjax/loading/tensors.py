"""From the named tensors of a checkpoint to the parameter tree of `models.transformer`.

Both readers give tensors their Hugging Face names and this module fuses them, so a layout mistake
can exist in one place only.
"""

import math
from typing import Callable, Mapping, NamedTuple

import jax
import numpy as np

from specjax.loading.error import LoadError
from specjax.models.config import ModelConfig
from specjax.types import Array, PyTree

_ALIGNMENT = 64  # bytes; XLA's CPU buffers start at multiples of it


class Tensor(NamedTuple):
  """A tensor that stays in its file until `read` is called."""

  shape: tuple[int, ...]
  read: Callable[[], np.ndarray]
  file: str


class _Part(NamedTuple):
  """One checkpoint tensor of a parameter."""

  name: str
  shape: tuple[int, ...]  # in the checkpoint
  place: tuple[int, ...]  # its shape within the parameter


class _Fused(NamedTuple):
  """A parameter: its parts one after the other along an axis of their places."""

  parts: tuple[_Part, ...]
  axis: int


def _whole(name: str, *shape: int) -> _Fused:
  return _Fused((_Part(name, shape, shape),), 0)


def _qkv(config: ModelConfig, prefix: str, kind: str, *inputs: int) -> _Fused:
  """The projections or biases of a layer, each KV head with its group of query heads."""
  kv, dim = config.num_kv_heads, config.head_dim
  sizes = zip("qkv", (config.num_heads // kv, 1, 1))
  return _Fused(tuple(
      _Part(f"{prefix}.self_attn.{name}_proj.{kind}", (kv * size * dim, *inputs),
            (kv, size, dim, *inputs))
      for name, size in sizes), axis=1)


def _layer_layout(config: ModelConfig, layer: int) -> dict[str, _Fused]:
  """Which checkpoint tensors make up each parameter of a layer."""
  hidden, mlp, dim = config.hidden_size, config.mlp_size, config.head_dim
  prefix = f"model.layers.{layer}"
  layout = {
      "attn_norm": _whole(f"{prefix}.input_layernorm.weight", hidden),
      "qkv": _qkv(config, prefix, "weight", hidden),
      "out": _whole(f"{prefix}.self_attn.o_proj.weight", hidden, config.num_heads * dim),
      "mlp_norm": _whole(f"{prefix}.post_attention_layernorm.weight", hidden),
      "gate_up": _Fused(tuple(
          _Part(f"{prefix}.mlp.{x}_proj.weight", (mlp, hidden), (1, mlp, hidden))
          for x in ("gate", "up")), axis=0),
      "down": _whole(f"{prefix}.mlp.down_proj.weight", hidden, mlp),
  }
  if config.qkv_bias:
    layout["qkv_bias"] = _qkv(config, prefix, "bias")
  if config.out_bias:
    layout["out_bias"] = _whole(f"{prefix}.self_attn.o_proj.bias", hidden)
  if config.qk_norm:
    layout["q_norm"] = _whole(f"{prefix}.self_attn.q_norm.weight", dim)
    layout["k_norm"] = _whole(f"{prefix}.self_attn.k_norm.weight", dim)
  return layout


def _layout(config: ModelConfig) -> PyTree:
  """The parameter tree of the model with a `_Fused` in place of each array."""
  table = (config.vocab_size, config.hidden_size)
  layout = {
      "embedding": _whole("model.embed_tokens.weight", *table),
      "final_norm": _whole("model.norm.weight", config.hidden_size),
  }
  if not config.tied_head:
    layout["head"] = _whole("lm_head.weight", *table)
  return layout | {f"layer_{i}": _layer_layout(config, i) for i in range(config.num_layers)}


def _redundant(name: str, config: ModelConfig) -> bool:
  """Tensors that some checkpoints carry although the config already says what they hold."""
  return name.endswith("rotary_emb.inv_freq") or (config.tied_head and name == "lm_head.weight")


def _check(config: ModelConfig, layout: PyTree, tensors: Mapping[str, Tensor], source: str):
  """Raises LoadError unless the file holds exactly the parts of the layout, in their shapes."""
  expected = {part.name: part.shape for part in _parts(layout)}
  if missing := [name for name in expected if name not in tensors]:
    raise LoadError(
        f"{source}: the tensor {missing[0]} is missing ({len(missing)} of {len(expected)} expected "
        f"tensors are).")
  for name, tensor in tensors.items():
    if name not in expected and not _redundant(name, config):
      raise LoadError(
          f"{tensor.file}: found a tensor {name} that a model of this configuration does not have; "
          f"leaving it out would compute something else.")
    if name in expected and tensor.shape != expected[name]:
      raise LoadError(
          f"{tensor.file}: the tensor {name} should have shape {expected[name]} by the "
          f"configuration, found {tensor.shape}.")


def _parts(layout: PyTree) -> list[_Part]:
  fused = jax.tree.leaves(layout, is_leaf=lambda x: isinstance(x, _Fused))
  return [part for parameter in fused for part in parameter.parts]


def _aligned(shape: tuple[int, ...], dtype) -> np.ndarray:
  """An uninitialised array that XLA on CPU can take over without a copy."""
  size = math.prod(shape) * np.dtype(dtype).itemsize
  raw = np.empty(size + _ALIGNMENT, np.uint8)
  start = -raw.ctypes.data % _ALIGNMENT
  return raw[start:start + size].view(dtype).reshape(shape)


def _read(layout: _Fused, tensors: Mapping[str, Tensor], dtype) -> Array:
  """One parameter, cast to `dtype`."""
  parts, axis = layout
  ends = np.cumsum([part.place[axis] for part in parts])
  shape = list(parts[0].place)
  shape[axis] = int(ends[-1])
  fused = _aligned(tuple(shape), dtype)
  for part, place in zip(parts, np.split(fused, ends[:-1], axis)):
    place[...] = tensors[part.name].read().reshape(part.place)
  return jax.device_put(fused)


def assemble(config: ModelConfig, tensors: Mapping[str, Tensor], source: str) -> PyTree:
  """The parameters of the decoder, in `config.dtype`, from tensors under Hugging Face names.

  Args:
    config: The shape of the model; every tensor is checked against it before any is read.
    tensors: By canonical name, such as `model.layers.0.self_attn.q_proj.weight`.
    source: The file or directory, for messages.

  Raises:
    LoadError: a tensor is missing, has another shape, or has no place in the model.
  """
  if config.num_layers > len(tensors):
    raise LoadError(
        f"{source}: the configuration says {config.num_layers} layers, but there are only "
        f"{len(tensors)} tensors in all.")
  layout = _layout(config)
  _check(config, layout, tensors, source)
  dtype = jax.numpy.dtype(config.dtype)
  is_fused = lambda x: isinstance(x, _Fused)
  return jax.tree.map(lambda fused: _read(fused, tensors, dtype), layout, is_leaf=is_fused)
