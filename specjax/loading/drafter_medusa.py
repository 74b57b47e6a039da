"""Medusa heads in the authors' layout."""

import re

from specjax.loading import drafter_files
from specjax.loading.drafter_files import Files, Part
from specjax.loading.error import LoadError
from specjax.models.config import ModelConfig
from specjax.models.heads.medusa import MedusaConfig
from specjax.types import PyTree

_BLOCK = re.compile(r"(\d+)\.(\d+)\.linear\.weight")


def medusa(files: Files, target: ModelConfig, dtype: str) -> tuple[MedusaConfig, PyTree]:
  """Heads and blocks are counted in the file: published configurations name fewer heads.

  A file without vocabulary matrices (the authors' second version) uses the target's LM head.
  """
  found = [tuple(map(int, m.groups())) for m in map(_BLOCK.fullmatch, files.tensors) if m]
  if not found:
    raise LoadError(f"{files.path}: there is no tensor 0.0.linear.weight, so no Medusa head.")
  heads, blocks = (max(numbers) + 1 for numbers in zip(*found))
  if heads * blocks > len(files.tensors):
    raise LoadError(
        f"{files.path}: the names of the tensors speak of {heads} heads of {blocks} blocks, but "
        f"there are only {len(files.tensors)} tensors.")
  hidden = (files.tensors["0.0.linear.weight"].shape or (0,))[-1] if (0, 0) in found else 0
  if hidden != target.hidden_size:
    raise LoadError(
        f"{files.path}: the heads read hidden states of size {hidden}, but those of the target "
        f"have {target.hidden_size}; they were made for another target.")
  own = f"0.{blocks}.weight" in files.tensors
  config = MedusaConfig(
      hidden, target.vocab_size, (target.num_layers,), heads, blocks, own, dtype)
  return config, drafter_files.assemble(files, _layout(config), dtype, ignored=())


def _layout(config: MedusaConfig) -> PyTree:
  hidden, layout = config.hidden_size, {}
  for k in range(config.heads):
    for i in range(config.blocks):
      layout[f"head_{k}_block_{i}"] = drafter_files.linear(
          {f"{k}.{i}.linear": hidden}, hidden, bias=True)
    if config.own_output:
      layout[f"head_{k}"] = (Part(f"{k}.{config.blocks}.weight", (config.vocab_size, hidden)),)
  return layout
