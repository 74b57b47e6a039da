"""Whole models: from a path to a record."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from specjax.loading import (
    gguf_file, gguf_model, gguf_tokenizer, hf_directory, hf_model, hf_tokenizer, tensors)
from specjax.loading.error import LoadError
from specjax.loading.tokenizer import Tokenizer
from specjax.models import transformer
from specjax.models.config import ModelConfig
from specjax.models.markov import TableConfig
from specjax.types import PyTree, Target


class Model(NamedTuple):
  """A loaded model.

  `sha256` is that of the GGUF file, or of a directory's weight files one after the other; it
  identifies the weights in a record of an experiment. A model without a tokenizer reads and writes
  token ids only.
  """

  config: ModelConfig | TableConfig
  params: PyTree
  tokenizer: Tokenizer | None
  source: str
  sha256: str

  def target(self, captures: tuple[int, ...] = ()) -> Target:
    """The model as pure functions over `params`; equal models give equal records.

    Args:
      captures: the hidden states that a drafter reads, `drafter.captures`: 0 is the embedding, i
        the output of layer i - 1, num_layers that of the last layer after the final norm.

    Raises:
      Error: the model has no such hidden state.
    """
    return transformer.target(self.config, captures)

  def require_tokenizer(self) -> Tokenizer:
    """The tokenizer, for whatever needs text.

    Raises:
      LoadError: the model came without one.
    """
    if self.tokenizer is None:
      raise LoadError(
          f"{self.source}: there is no tokenizer.json (the older formats, tokenizer.model and "
          f"vocab.txt, are not read), so this model takes and gives token ids only; text needs a "
          f"directory with its tokenizer.")
    return self.tokenizer


def digest(*paths: Path) -> str:
  """The hexadecimal SHA-256 of the files one after the other."""
  total = hashlib.sha256()
  for path in paths:
    with open(path, "rb") as file:
      while block := file.read(1 << 20):
        total.update(block)
  return total.hexdigest()


def _load_gguf(path: Path, dtype: str) -> Model:
  file = gguf_file.read(path)
  config = gguf_model.config(file, dtype)
  tokenizer = gguf_tokenizer.tokenizer(file)
  params = tensors.assemble(config, gguf_model.tensors(file, config), str(path))
  return Model(config, params, tokenizer, str(path), digest(path))


def _load_directory(path: Path, dtype: str) -> Model:
  config_path = path / "config.json"
  config = hf_model.config(config_path, hf_directory.read_json(config_path), dtype)
  tokenizer = hf_tokenizer.tokenizer(path)
  shards = hf_directory.shards(path)
  params = tensors.assemble(config, hf_directory.tensors(shards), str(path))
  return Model(config, params, tokenizer, str(path), digest(*shards))


def _check_tokenizer(model: Model) -> Model:
  """A token that the model has no row for would be clamped to its last row without a word."""
  if model.tokenizer is None:
    return model
  size = model.config.vocab_size
  largest = max((model.tokenizer.vocab_size - 1, *model.tokenizer.eos_ids))
  if largest >= size:
    raise LoadError(
        f"{model.source}: the tokenizer knows the id {largest}, but the model has only {size} "
        f"tokens.")
  return model


def load(path: str | os.PathLike, dtype: str = "float32") -> Model:
  """Loads a GGUF file or a Hugging Face directory.

  Args:
    path: A `.gguf` file, or a directory with config.json, safetensors and, for text,
      tokenizer.json.
    dtype: Of the weights in memory, "float32" or "bfloat16".

  Raises:
    LoadError: the path does not exist, or what is there is damaged or of an unsupported kind.
  """
  path = Path(path)
  if not path.exists():
    raise LoadError(
        f"{path}: no such file or directory; expected a GGUF file or a model directory.")
  return _check_tokenizer((_load_directory if path.is_dir() else _load_gguf)(path, dtype))


def check_same_vocabulary(target: Model, drafter: Model):
  """Makes sure that a drafter's tokens mean to the target what they mean to the drafter.

  Ids that only one of the tokenizers knows are the padding of the other's vocabulary, and pass.
  Where a model has no tokenizer, only the sizes can be compared.

  Raises:
    LoadError: the sizes of the vocabularies or the strings of some ids differ.
  """
  names = f"the target {target.source} and the drafter {drafter.source}"
  sizes = target.config.vocab_size, drafter.config.vocab_size
  if sizes[0] != sizes[1]:
    raise LoadError(
        f"{names} have vocabularies of different sizes, {sizes[0]} and {sizes[1]}; a drafter must "
        f"share the target's vocabulary.")
  if target.tokenizer is None or drafter.tokenizer is None:
    return
  ours, theirs = target.tokenizer.backend, drafter.tokenizer.backend
  pairs = [(i, ours.id_to_token(i), theirs.id_to_token(i)) for i in range(sizes[0])]
  differ = [(i, a, b) for i, a, b in pairs if a is not None and b is not None and a != b]
  if differ:
    first = ", ".join(f"{i} ({a!r:.40} against {b!r:.40})" for i, a, b in differ[:3])
    raise LoadError(
        f"{names} give different strings to {len(differ)} of {sizes[0]} ids, first {first}; a "
        f"drafter must share the target's vocabulary.")
