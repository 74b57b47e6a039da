"""The files of a published drafter, and how its tensors become parameters.

A reader of one architecture (`drafter_eagle`, ...) gives a layout: the parameter tree of its module
with the checkpoint's tensors in place of each array. Everything is checked against it before
anything is read, so nothing is ever loaded half.
"""

from pathlib import Path
from typing import Any, Mapping, NamedTuple

import jax
import numpy as np

from specjax.loading import hf_directory
from specjax.loading.error import LoadError
from specjax.loading.tensors import Tensor
from specjax.models.config import ModelConfig
from specjax.types import Array, PyTree

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
_INTEGERS = ("d2t", "t2d")


class Files(NamedTuple):
  """A drafter's directory: its config.json, and its tensors by name, unread."""

  path: Path
  config: dict[str, Any]
  tensors: dict[str, Tensor]
  shards: list[Path]


class Part(NamedTuple):
  """One tensor of the checkpoint, and the shape that the configuration gives it."""

  name: str
  shape: tuple[int, ...]


class Stack(NamedTuple):
  """A parameter whose first axis counts experts, heads or the like; each element has its parts."""

  elements: tuple[tuple[Part, ...], ...]


def read(path: Path) -> Files:
  """Opens the directory of a published drafter.

  Raises:
    LoadError: it is missing, damaged, or holds pickled weights only: to unpickle a file is to run
      what it says.
  """
  if path.suffix in _PICKLES:
    raise _pickled(path)
  if not path.is_dir():
    raise LoadError(f"{path}: no such directory; expected one with config.json and safetensors.")
  names = sorted(x.name for x in path.iterdir())
  found = [x for x in names if x.endswith(".safetensors")]
  pickles = [x for x in names if x.endswith(_PICKLES)]
  if not found and pickles:
    raise _pickled(path / pickles[0])
  config = hf_directory.read_json(path / "config.json")
  shards = hf_directory.shards(path)
  return Files(path, config, hf_directory.tensors(shards, _INTEGERS), shards)


def _pickled(path: Path) -> LoadError:
  return LoadError(
      f"{path}: weights in a pickle, which is a program, are not read. Convert them with torch's "
      f"weights-only loader: python scripts/to_safetensors.py {path}")


def layer(
    prefix: str, config: ModelConfig, inputs: int | None = None, normed: bool = True) -> PyTree:
  """The layout of `models.heads.parts.Layer`, for tensors under Hugging Face names.

  Args:
    prefix: what their names begin with, such as "layers.0.".
    config: the layer's shape.
    inputs: the width that attention reads; the hidden size if not given.
    normed: whether there is a norm before attention.
  """
  c = config
  layout = {
      "attention": attention(prefix + "self_attn.", config, inputs or c.hidden_size),
      "mlp_norm": norm(prefix + "post_attention_layernorm", c.hidden_size),
      "mlp": mlp(prefix + "mlp.", c.hidden_size, c.mlp_size)}
  if normed:
    layout["attn_norm"] = norm(prefix + "input_layernorm", c.hidden_size)
  return layout


def attention(prefix: str, config: ModelConfig, inputs: int, gated: bool = False) -> PyTree:
  """The layout of `models.heads.parts.Attention`."""
  c = config
  width, kv_width = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
  layout = {
      "q": linear({prefix + "q_proj": width * (1 + gated)}, inputs, c.qkv_bias),
      "kv": linear({prefix + "k_proj": kv_width, prefix + "v_proj": kv_width}, inputs, c.qkv_bias),
      "out": linear({prefix + "o_proj": c.hidden_size}, width, c.out_bias)}
  if c.qk_norm:
    layout |= {f"{x}_norm": norm(f"{prefix}{x}_norm", c.head_dim) for x in "qk"}
  return layout


def mlp(prefix: str, hidden: int, size: int) -> PyTree:
  """The layout of `models.heads.parts.Mlp`."""
  return {
      "gate_up": linear({prefix + "gate_proj": size, prefix + "up_proj": size}, hidden),
      "down": linear({prefix + "down_proj": hidden}, size)}


def linear(outputs: dict[str, int], inputs: int, bias: bool = False) -> PyTree:
  """The layout of `models.heads.parts.Linear`: tensors below each other, by the rows of each."""
  layout = {"weights": tuple(Part(f"{x}.weight", (n, inputs)) for x, n in outputs.items())}
  if bias:
    layout["bias"] = tuple(Part(f"{x}.bias", (n,)) for x, n in outputs.items())
  return layout


def norm(name: str, size: int) -> PyTree:
  """The layout of `models.heads.parts.Norm`."""
  return {"scale": (Part(f"{name}.weight", (size,)),)}


def table(name: str, *shape: int) -> tuple[Part, ...]:
  """The layout of a bare array."""
  return (Part(f"{name}.weight", shape),)


def _is_leaf(x) -> bool:
  return isinstance(x, Stack) or (isinstance(x, tuple) and bool(x) and isinstance(x[0], Part))


def _parts(leaf) -> tuple[Part, ...]:
  return sum(leaf.elements, ()) if isinstance(leaf, Stack) else leaf


def assemble(
    files: Files, layout: PyTree, dtype: str, ignored: tuple[str, ...] = _INTEGERS) -> PyTree:
  """The parameters in `dtype`.

  Args:
    files: the checkpoint.
    layout: tuples of `Part`, or `Stack`, in place of arrays.
    dtype: of the parameters.
    ignored: names of tensors, or what they begin with, that are read elsewhere or say nothing new.

  Raises:
    LoadError: a tensor is missing, has another shape, or has no place in the network.
  """
  leaves = jax.tree.leaves(layout, is_leaf=_is_leaf)
  expected = {part.name: part.shape for leaf in leaves for part in _parts(leaf)}
  if missing := [name for name in expected if name not in files.tensors]:
    raise LoadError(
        f"{files.path}: the tensor {missing[0]} is missing ({len(missing)} of {len(expected)} "
        f"expected tensors are).")
  for name, tensor in files.tensors.items():
    if name not in expected:
      if name.startswith(ignored) or name.endswith("rotary_emb.inv_freq"):
        continue
      raise LoadError(
          f"{tensor.file}: found a tensor {name} that a drafter of this configuration does not "
          f"have; leaving it out would compute something else.")
    if tensor.shape != expected[name]:
      raise LoadError(
          f"{tensor.file}: the tensor {name} should have shape {expected[name]} by the "
          f"configuration, found {tensor.shape}.")
  return jax.tree.map(lambda leaf: _read(leaf, files.tensors, dtype), layout, is_leaf=_is_leaf)


def _read(leaf, tensors: Mapping[str, Tensor], dtype: str) -> Array:
  fuse = lambda parts: np.concatenate([tensors[part.name].read() for part in parts])
  fused = np.stack([fuse(x) for x in leaf.elements]) if isinstance(leaf, Stack) else fuse(leaf)
  return jax.device_put(fused.astype(jax.numpy.dtype(dtype)))


def target_ids(files: Files, draft_vocab: int, vocab_size: int) -> Array | None:
  """The target's id of each token of a reduced draft vocabulary, int32[Vd]; None if it is whole.

  On disk d2t holds offsets: the target's id of draft id d is d + d2t[d]. t2d, where there is one,
  marks the same ids.

  Raises:
    LoadError: d2t is missing, or leaves the vocabulary, repeats an id, or disagrees with t2d.
  """
  tensors = files.tensors
  if "d2t" not in tensors:
    if draft_vocab == vocab_size:
      return None
    raise LoadError(
        f"{files.path}: the tensor d2t is missing, but the draft vocabulary has {draft_vocab} of "
        f"the target's {vocab_size} tokens.")
  shapes = {"d2t": (draft_vocab,), "t2d": (vocab_size,)}
  for name, shape in shapes.items():
    if name in tensors and tensors[name].shape != shape:
      raise LoadError(
          f"{files.path}: the tensor {name} should have shape {shape} by the configuration, found "
          f"{tensors[name].shape}.")
  ids = tensors["d2t"].read().astype(np.int64) + np.arange(draft_vocab)
  outside = np.flatnonzero((ids < 0) | (ids >= vocab_size))
  if outside.size:
    raise LoadError(
        f"{files.path}: d2t maps the draft token {outside[0]} to {ids[outside[0]]}, outside of the "
        f"target's {vocab_size} tokens ({outside.size} of {draft_vocab} leave it); d2t holds "
        f"offsets, target id minus draft id.")
  if len(np.unique(ids)) < draft_vocab:
    raise LoadError(
        f"{files.path}: d2t maps several draft tokens to one token of the target; d2t holds "
        f"offsets, target id minus draft id.")
  if "t2d" in tensors:
    marked = np.flatnonzero(tensors["t2d"].read())
    if not np.array_equal(marked, np.sort(ids)):
      raise LoadError(f"{files.path}: t2d marks other tokens than d2t leads to.")
  return jax.numpy.asarray(ids, jax.numpy.int32)
