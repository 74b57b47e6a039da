"""The tokenizer inside a GGUF file, rebuilt from its metadata."""

import math

import tokenizers

from specjax.loading import bpe, gguf_file
from specjax.loading.error import LoadError
from specjax.loading.tokenizer import Tokenizer

_PREFIX = "tokenizer.ggml."
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # token types that are matched before merging
_MAX_TOKEN = 1 << 12  # characters; the longest real ones are runs of a thousand spaces


def _typed(file: gguf_file.File, key: str, kind: type, default=None):
  value = file.metadata.get(_PREFIX + key, default)
  if value is not None and type(value) is not kind:
    raise LoadError(
        f"{file.path}: {_PREFIX}{key} should be of type {kind.__name__}, found "
        f"{type(value).__name__}.")
  return value


def _items(file: gguf_file.File, key: str, kind: type, length: int | None = None) -> list:
  """A list in which every item is of the given type."""
  values = _typed(file, key, list) or []
  if not values or not all(isinstance(x, kind) for x in values):
    raise LoadError(
        f"{file.path}: {_PREFIX}{key} should be a list of type {kind.__name__}; it is missing or "
        f"not.")
  if length is not None and len(values) != length:
    raise LoadError(
        f"{file.path}: {_PREFIX}{key} should have {length} entries, found {len(values)}.")
  return values


def _special_id(file: gguf_file.File, name: str, tokens: list[str]) -> int | None:
  token = _typed(file, f"{name}_token_id", int)
  if token is not None and not 0 <= token < len(tokens):
    raise LoadError(
        f"{file.path}: {_PREFIX}{name}_token_id is {token}, but there are {len(tokens)} tokens.")
  return token


def _vocabulary(file: gguf_file.File) -> dict[str, int]:
  tokens = _items(file, "tokens", str)
  vocabulary = {token: i for i, token in enumerate(tokens)}
  if len(vocabulary) != len(tokens):
    raise LoadError(
        f"{file.path}: {len(tokens) - len(vocabulary)} of {len(tokens)} tokens are duplicates.")
  if (longest := max(map(len, tokens))) > _MAX_TOKEN:
    raise LoadError(
        f"{file.path}: a token has {longest} characters, more than the {_MAX_TOKEN} of any real "
        f"one.")
  return vocabulary


def _byte_level(file: gguf_file.File, vocabulary: dict[str, int]):
  """The tokenizer of a "gpt2" file, and whether its prompts start with BOS if nothing is said."""
  name = _typed(file, "pre", str)
  if name not in bpe.FAMILIES:
    raise LoadError(
        f"{file.path}: the pre-tokenizer {name!r} is not known; expected one of "
        f"{', '.join(bpe.FAMILIES)}. The same model as a Hugging Face directory can be loaded.")
  merges = [tuple(merge.split(" ", 1)) for merge in _items(file, "merges", str)]
  try:
    return bpe.byte_level(bpe.FAMILIES[name], vocabulary, merges), bpe.FAMILIES[name].add_bos
  except Exception as error:  # The bindings raise plain Exception.
    raise LoadError(f"{file.path}: the merges do not fit the tokens: {error}.") from error


def _sentencepiece(file: gguf_file.File, vocabulary: dict[str, int]):
  """The same for a "llama" file."""
  scores = _items(file, "scores", float, len(vocabulary))
  if not all(math.isfinite(score) for score in scores):
    raise LoadError(f"{file.path}: {_PREFIX}scores should be finite numbers.")
  tokens = list(vocabulary)
  unknown = _special_id(file, "unknown", tokens)
  return bpe.sentencepiece(
      vocabulary, scores, unknown=tokens[unknown or 0],
      leading_space=_typed(file, "add_space_prefix", bool, True)), True


_KINDS = {"gpt2": _byte_level, "llama": _sentencepiece}


def tokenizer(file: gguf_file.File) -> Tokenizer:
  """The tokenizer of a GGUF file.

  Raises:
    LoadError: it is of an unsupported kind, or its parts do not fit together.
  """
  if (model := _typed(file, "model", str)) not in _KINDS:
    raise LoadError(
        f"{file.path}: the tokenizer model {model!r} is not supported; expected one of "
        f"{', '.join(_KINDS)}. The same model as a Hugging Face directory can be loaded.")
  vocabulary = _vocabulary(file)
  tokens = list(vocabulary)
  types = _items(file, "token_type", int, len(tokens))
  backend, add_bos = _KINDS[model](file, vocabulary)
  backend.add_tokens([
      tokenizers.AddedToken(token, normalized=False, special=kind != _USER_DEFINED)
      for token, kind in zip(tokens, types) if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED)])

  ids = {name: _special_id(file, name, tokens) for name in ("bos", "eos", "eot", "eom")}
  ends = dict.fromkeys(ids[name] for name in ("eos", "eot", "eom") if ids[name] is not None)
  template = file.metadata.get("tokenizer.chat_template")
  return Tokenizer(
      backend=backend,
      eos_ids=tuple(ends),
      bos_id=ids["bos"] if _typed(file, "add_bos_token", bool, add_bos) else None,
      chat_template=template if isinstance(template, str) else None,
      template_strings={
          f"{name}_token": tokens[ids[name]] for name in ("bos", "eos") if ids[name] is not None},
      source=file.path)
