"""The tokenizer inside a GGUF file, rebuilt from its metadata.

A GGUF file names its pre-tokenizer (how text is cut into words before merging) instead of
describing it, so the few families that Llama-type models use are spelled out here. The patterns are
those of the models' own Hugging Face tokenizers.
"""

from typing import Callable, NamedTuple

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from specjax.loading import gguf_file
from specjax.loading.error import LoadError
from specjax.loading.tokenizer import Tokenizer

_PREFIX = "tokenizer.ggml."
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # token types that are matched before merging

_GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"


def _words(digits: str) -> str:
  """The pattern of Llama 3 and Qwen 2, which differ in how many digits make a word."""
  return (
      r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits +
      r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def _cut(*patterns: str) -> pre_tokenizers.PreTokenizer:
  """Cuts at the matches of each pattern in turn, then maps bytes to printable characters."""
  cuts = [pre_tokenizers.Split(tokenizers.Regex(x), "isolated") for x in patterns]
  return pre_tokenizers.Sequence(
      cuts + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _gpt2_bytes() -> pre_tokenizers.PreTokenizer:
  return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


class _Family(NamedTuple):
  """What the name of a pre-tokenizer stands for."""

  cut: Callable[[], pre_tokenizers.PreTokenizer]
  whole_words_first: bool = False  # a word that is a token is not merged from its bytes
  add_bos: bool = False  # unless the file says otherwise
  nfc: bool = False


_LLAMA3 = _Family(lambda: _cut(_words(r"\p{N}{1,3}")), whole_words_first=True, add_bos=True)
_QWEN2 = _Family(lambda: _cut(_words(r"\p{N}")), nfc=True)
_DIGITS_APART = _Family(lambda: pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), _gpt2_bytes()]))

_FAMILIES = {
    "default": _Family(lambda: _cut(
        r"[\p{P}\$\+<=>\^~\|]+", _GPT2_WORDS, r"\p{N}+", "[0-9][0-9][0-9]")),
    "gpt-2": _Family(_gpt2_bytes),
    "smollm": _DIGITS_APART,
    "starcoder": _DIGITS_APART,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
}


def _typed(file: gguf_file.File, key: str, kind: type, default=None):
  value = file.metadata.get(_PREFIX + key, default)
  if value is not None and type(value) is not kind:
    raise LoadError(
        f"{file.path}: {_PREFIX}{key} should be of type {kind.__name__}, found "
        f"{type(value).__name__}.")
  return value


def _strings(file: gguf_file.File, key: str) -> list[str]:
  values = _typed(file, key, list)
  if not values or not all(isinstance(x, str) for x in values):
    raise LoadError(f"{file.path}: {_PREFIX}{key} should be a list of strings; it is missing or not.")
  return values


def _special_id(file: gguf_file.File, name: str, tokens: list[str]) -> int | None:
  token = _typed(file, f"{name}_token_id", int)
  if token is not None and not 0 <= token < len(tokens):
    raise LoadError(
        f"{file.path}: {_PREFIX}{name}_token_id is {token}, but there are {len(tokens)} tokens.")
  return token


def _family(file: gguf_file.File) -> _Family:
  if (model := _typed(file, "model", str)) != "gpt2":
    raise LoadError(
        f"{file.path}: the tokenizer model {model!r} is not supported; expected 'gpt2' (byte-level "
        f"BPE). The same model as a Hugging Face directory with tokenizer.json can be loaded.")
  name = _typed(file, "pre", str)
  if name not in _FAMILIES:
    raise LoadError(
        f"{file.path}: the pre-tokenizer {name!r} is not known; expected one of "
        f"{', '.join(_FAMILIES)}. The same model as a Hugging Face directory can be loaded.")
  return _FAMILIES[name]


def _backend(file: gguf_file.File, family: _Family, tokens: list[str]) -> tokenizers.Tokenizer:
  """Byte-level BPE over the file's tokens and merges."""
  vocabulary = {token: i for i, token in enumerate(tokens)}
  if len(vocabulary) != len(tokens):
    raise LoadError(
        f"{file.path}: {len(tokens) - len(vocabulary)} of {len(tokens)} tokens are duplicates.")
  merges = [tuple(merge.split(" ", 1)) for merge in _strings(file, "merges")]
  try:
    model = models.BPE(vocabulary, merges, ignore_merges=family.whole_words_first)
  except Exception as error:  # The bindings raise plain Exception.
    raise LoadError(f"{file.path}: the merges do not fit the tokens: {error}.") from error
  backend = tokenizers.Tokenizer(model)
  if family.nfc:
    backend.normalizer = normalizers.NFC()
  backend.pre_tokenizer = family.cut()
  backend.decoder = decoders.ByteLevel()

  types = _typed(file, "token_type", list)
  if types is None or len(types) != len(tokens):
    raise LoadError(
        f"{file.path}: {_PREFIX}token_type should have {len(tokens)} entries, found "
        f"{len(types or ())}.")
  backend.add_tokens([
      tokenizers.AddedToken(token, normalized=False, special=kind != _USER_DEFINED)
      for token, kind in zip(tokens, types) if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED)])
  return backend


def tokenizer(file: gguf_file.File) -> Tokenizer:
  """The tokenizer of a GGUF file.

  Raises:
    LoadError: it is of an unsupported kind, or its parts do not fit together.
  """
  family, tokens = _family(file), _strings(file, "tokens")
  ids = {name: _special_id(file, name, tokens) for name in ("bos", "eos", "eot", "eom")}
  ends = dict.fromkeys(ids[name] for name in ("eos", "eot", "eom") if ids[name] is not None)
  add_bos = _typed(file, "add_bos_token", bool, family.add_bos)
  template = file.metadata.get("tokenizer.chat_template")
  return Tokenizer(
      backend=_backend(file, family, tokens),
      eos_ids=tuple(ends),
      bos_id=ids["bos"] if add_bos else None,
      chat_template=template if isinstance(template, str) else None,
      template_strings={
          f"{name}_token": tokens[ids[name]] for name in ("bos", "eos") if ids[name] is not None},
      source=file.path)
