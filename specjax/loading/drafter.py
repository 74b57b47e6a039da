"""Published drafters: from a directory to a record that makes a `Drafter`."""

import functools
import os
from pathlib import Path
import re
from typing import Any, Callable, NamedTuple

from specjax import drafters
from specjax.loading import (
    drafter_dflash, drafter_eagle, drafter_files, drafter_medusa, drafter_mtp)
from specjax.loading.drafter_files import Files
from specjax.loading.error import LoadError
from specjax.loading.model import digest, Model
from specjax.models.config import ModelConfig
from specjax.models.heads import eagle, mtp
from specjax.types import Drafter, Error, PyTree


class LoadedDrafter(NamedTuple):
  """A drafter that was read from its published files.

  `params` are `Params.drafter`; the embedding and the LM head are among them only where the files
  have them, and are the target's otherwise.
  """

  kind: str  # one of KINDS
  config: Any  # of its network, in specjax.models.heads
  captures: tuple[int, ...]  # the hidden states of the target that it reads, see `Model.target`
  params: PyTree
  source: str
  sha256: str  # of its weight files one after the other
  most: int | None  # tokens that it drafts at most; None if it goes on for as long as it is asked

  def make(self, gamma: int | None = 4, tree: str = "") -> Drafter:
    """The drafter of chains of `gamma` tokens; None takes what it was made for.

    Raises:
      Error: it cannot draft that many; it has no length of its own; `tree` is not empty.
    """
    if tree:
      raise Error(f"Published drafters draft chains here; the tree {tree!r} is not supported.")
    gamma = self.most if gamma is None else gamma
    if gamma is None:
      raise Error(f"A drafter of kind {self.kind} drafts any number of tokens: give gamma.")
    return _KINDS[self.kind].make(self.config, gamma)


class _Kind(NamedTuple):
  """How a kind is read, and what it becomes."""

  read: Callable[[Files, ModelConfig, str], tuple[Any, PyTree]]
  make: Callable[[Any, int], Drafter]
  most: Callable[[Any], int | None]


def _chain(head: Callable) -> Callable[[Any, int], Drafter]:
  return lambda config, gamma: drafters.feature(head(config), gamma)


_KINDS = {
    "eagle1": _Kind(drafter_eagle.eagle1, _chain(eagle.eagle1), lambda config: None),
    "eagle3": _Kind(drafter_eagle.eagle3, _chain(eagle.eagle3), lambda config: None),
    "medusa": _Kind(drafter_medusa.medusa, drafters.parallel_heads, lambda config: config.heads),
    "mtp": _Kind(drafter_mtp.mtp, _chain(mtp.mtp), lambda config: None),
    "dflash": _Kind(
        drafter_dflash.dflash, drafters.block_diffusion, lambda config: config.drafts),
    "dspark": _Kind(
        drafter_dflash.dspark, drafters.block_diffusion, lambda config: config.drafts),
}
KINDS = tuple(_KINDS)

# A kind by a tensor that no other kind has, the first that is found.
_TELLING = (
    ("dspark", r"markov_head\.markov_w1\.weight"),
    ("eagle3", r"midlayer\.hidden_norm\.weight"),
    ("eagle3", r"layers\.0\.hidden_norm\.weight"),
    ("medusa", r"\d+\.\d+\.linear\.weight"),
    ("mtp", r"mtp\.fc\.weight|mtp_layers\.0\.input_proj\.weight"),
    ("mtp", r"model\.layers\.\d+\.eh_proj\.weight"),
    ("dflash", r"hidden_norm\.weight"),
    ("eagle1", r"fc\.weight"),
)
_SPECULATORS = {"eagle3": "eagle3", "dflash": "dflash", "mtp": "mtp"}


def load_drafter(
    path: str | os.PathLike, model: Model, kind: str | None = None) -> LoadedDrafter:
  """Loads a published drafter of `model`, in the target's dtype.

  Args:
    path: a directory with config.json and safetensors.
    model: the target.
    kind: one of KINDS, or "eagle" for either EAGLE; by default what the configuration and the names
      of the tensors say.

  Raises:
    LoadError: the directory is missing or damaged, of an unsupported kind, or made for another
      target. Nothing is loaded half.
    Error: there is no such kind.
  """
  if not isinstance(model.config, ModelConfig):
    raise Error(f"{model.source}: this target has no hidden states for a drafter to read.")
  files = drafter_files.read(Path(path))
  kind = _recognise(files) if kind is None else _named(files, kind)
  config, params = _KINDS[kind].read(files, model.config, model.config.dtype)
  return LoadedDrafter(
      kind, config, config.captures, params, str(files.path), digest(*files.shards),
      _KINDS[kind].most(config))


def _named(files: Files, kind: str) -> str:
  if kind == "eagle":
    found = _recognise(files)
    if not found.startswith("eagle"):
      raise LoadError(f"{files.path}: this is a drafter of kind {found}, not EAGLE.")
    return found
  if kind not in _KINDS:
    raise Error(f"There is no kind of drafter {kind!r}; choose among eagle, {', '.join(KINDS)}.")
  return kind


def _recognise(files: Files) -> str:
  """The kind that the configuration names, else the one that the tensors tell."""
  named = files.config.get("speculators_model_type")
  if named is not None:
    if not isinstance(named, str) or named not in _SPECULATORS:
      raise LoadError(
          f"{files.path}: drafters of speculators_model_type {named!r:.80} are not supported; "
          f"expected one of {', '.join(_SPECULATORS)}.")
    return _SPECULATORS[named]
  for kind, pattern in _TELLING:
    if any(map(functools.partial(re.fullmatch, pattern), files.tensors)):
      return kind
  some = ", ".join(sorted(files.tensors)[:3])
  raise LoadError(
      f"{files.path}: not a drafter of a supported kind ({', '.join(KINDS)}); it holds tensors "
      f"such as {some or 'none'}.")
