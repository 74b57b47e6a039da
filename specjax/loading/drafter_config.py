"""What the configurations of published drafters have in common, each value checked."""

from typing import Any

from specjax.loading import hf_model
from specjax.loading.drafter_files import Files
from specjax.loading.error import LoadError
from specjax.models.config import ModelConfig


def layer(files: Files, values: dict[str, Any], dtype: str) -> ModelConfig:
  """The shape of a drafter's own layers, read as that of a model of the same type.

  Args:
    files: the checkpoint, for messages.
    values: the object of its config.json that describes the layers; None counts as absent.
    dtype: of the parameters.

  Raises:
    LoadError: a key is missing or mistyped, or asks for something that is not supported.
  """
  config = hf_model.config(files.path / "config.json", values | dict(architectures=None), dtype)
  if config.num_layers > len(files.tensors):
    raise LoadError(
        f"{files.path}: the configuration says {config.num_layers} layers, but there are only "
        f"{len(files.tensors)} tensors in all.")
  return config


def check_target(files: Files, config: ModelConfig, target: ModelConfig, hidden: int | None = None):
  """Makes sure that a drafter was made for a target of this shape.

  Args:
    files: the checkpoint, for messages.
    config: of the drafter's layers.
    target: of the target.
    hidden: the target's hidden size by the drafter's configuration; its own if not given.

  Raises:
    LoadError: the hidden size or the vocabulary differs.
  """
  hidden = hidden or config.hidden_size
  if hidden != target.hidden_size:
    raise LoadError(
        f"{files.path}: the drafter reads hidden states of size {hidden}, but those of the target "
        f"have {target.hidden_size}; it was made for another target.")
  if config.vocab_size != target.vocab_size:
    raise LoadError(
        f"{files.path}: the drafter was made for a vocabulary of {config.vocab_size} tokens, but "
        f"the target has {target.vocab_size}; it was made for another target.")


def captures(files: Files, ids: Any, shift: int, target: ModelConfig) -> tuple[int, ...]:
  """Captured hidden states in ascending order, from the ids of a configuration plus `shift`.

  Raises:
    LoadError: they are no integers, there are none or one twice, or the target has no such state.
  """
  is_id = lambda x: isinstance(x, int) and not isinstance(x, bool)
  if not isinstance(ids, (list, tuple)) or not ids or not all(map(is_id, ids)):
    raise LoadError(
        f"{files.path / 'config.json'}: layer ids should be a list of integers, found {ids!r:.80}.")
  states = tuple(sorted(i + shift for i in ids))
  if states[0] < 0 or states[-1] > target.num_layers or len(set(states)) < len(states):
    raise LoadError(
        f"{files.path / 'config.json'}: the layer ids {list(ids)!r:.80} mean the hidden states "
        f"{list(states)!r:.80}, but those of the target are numbered 0 to {target.num_layers}, "
        f"and each is taken once.")
  return states


def number(files: Files, key: str, default: int | None = None) -> int:
  """A positive integer."""
  value = files.config.get(key)
  value = default if value is None else value
  if not isinstance(value, int) or isinstance(value, bool) or value < 1:
    raise LoadError(
        f"{files.path / 'config.json'}: {key!r} should be a positive integer, found {value!r:.80}.")
  return value


def switch(files: Files, key: str) -> bool:
  """A boolean, false if absent."""
  value = files.config.get(key)
  if value not in (None, True, False):
    raise LoadError(
        f"{files.path / 'config.json'}: {key!r} should be true or false, found {value!r:.80}.")
  return bool(value)


def block(files: Files, key: str) -> dict[str, Any]:
  """An object inside the configuration, empty if absent."""
  value = files.config.get(key)
  value = {} if value is None else value
  if not isinstance(value, dict):
    raise LoadError(
        f"{files.path / 'config.json'}: {key!r} should be an object, found {value!r:.80}.")
  return value
