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
  """One checkpoint tensor of a parameter; the parts of a parameter are stacked by rows."""

  name: str
  shape: tuple[int, ...]


def _layer_layout(config: ModelConfig, layer: int) -> dict[str, tuple[_Part, ...]]:
  """Which checkpoint tensors make up each parameter of a layer."""
  hidden, mlp, dim = config.hidden_size, config.mlp_size, config.head_dim
  rows = {"q": config.num_heads * dim, "k": config.num_kv_heads * dim}
  rows["v"] = rows["k"]

  def part(name, *shape):
    return _Part(f"model.layers.{layer}.{name}", shape)

  layout = {
      "attn_norm": (part("input_layernorm.weight", hidden),),
      "qkv": tuple(part(f"self_attn.{x}_proj.weight", rows[x], hidden) for x in "qkv"),
      "out": (part("self_attn.o_proj.weight", hidden, rows["q"]),),
      "mlp_norm": (part("post_attention_layernorm.weight", hidden),),
      "gate_up": tuple(part(f"mlp.{x}_proj.weight", mlp, hidden) for x in ("gate", "up")),
      "down": (part("mlp.down_proj.weight", hidden, mlp),),
  }
  if config.qkv_bias:
    layout["qkv_bias"] = tuple(part(f"self_attn.{x}_proj.bias", rows[x]) for x in "qkv")
  if config.out_bias:
    layout["out_bias"] = (part("self_attn.o_proj.bias", hidden),)
  if config.qk_norm:
    layout["q_norm"] = (part("self_attn.q_norm.weight", dim),)
    layout["k_norm"] = (part("self_attn.k_norm.weight", dim),)
  return layout


def _layout(config: ModelConfig) -> PyTree:
  """The parameter tree of the model with a tuple of `_Part` in place of each array."""
  table = (config.vocab_size, config.hidden_size)
  layout = {
      "embedding": (_Part("model.embed_tokens.weight", table),),
      "final_norm": (_Part("model.norm.weight", (config.hidden_size,)),),
  }
  if not config.tied_head:
    layout["head"] = (_Part("lm_head.weight", table),)
  return layout | {f"layer_{i}": _layer_layout(config, i) for i in range(config.num_layers)}


def _redundant(name: str, config: ModelConfig) -> bool:
  """Tensors that some checkpoints carry although the config already says what they hold."""
  return name.endswith("rotary_emb.inv_freq") or (config.tied_head and name == "lm_head.weight")


def _check(config: ModelConfig, layout: PyTree, tensors: Mapping[str, Tensor], source: str):
  """Raises LoadError unless the file holds exactly the parts of the layout, in their shapes."""
  expected = {part.name: part.shape for part in jax.tree.leaves(layout, is_leaf=_is_part)}
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


def _is_part(x) -> bool:
  return isinstance(x, _Part)


def _aligned(shape: tuple[int, ...], dtype) -> np.ndarray:
  """An uninitialised array that XLA on CPU can take over without a copy."""
  size = math.prod(shape) * np.dtype(dtype).itemsize
  raw = np.empty(size + _ALIGNMENT, np.uint8)
  start = -raw.ctypes.data % _ALIGNMENT
  return raw[start:start + size].view(dtype).reshape(shape)


def _read(parts: tuple[_Part, ...], tensors: Mapping[str, Tensor], dtype) -> Array:
  """One parameter: its parts below each other, cast to `dtype`."""
  rows = sum(part.shape[0] for part in parts)
  fused = _aligned((rows, *parts[0].shape[1:]), dtype)
  start = 0
  for part in parts:
    fused[start:start + part.shape[0]] = tensors[part.name].read()
    start += part.shape[0]
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
  is_parts = lambda x: isinstance(x, tuple)
  return jax.tree.map(lambda parts: _read(parts, tensors, dtype), layout, is_leaf=is_parts)
