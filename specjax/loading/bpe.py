"""The two kinds of byte-pair tokenizers that Llama-type models use, built from their parts.

GGUF files name a pre-tokenizer (how text is cut into words before merging) instead of describing
it, so the families are spelled out here, as the models' own Hugging Face tokenizers have them.
"""

from typing import Callable, NamedTuple

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

_GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_SPACE = "▁"  # how sentencepiece writes a space


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


class Family(NamedTuple):
  """What the name of a pre-tokenizer stands for."""

  cut: Callable[[], pre_tokenizers.PreTokenizer]
  whole_words_first: bool = False  # a word that is a token is not merged from its bytes
  add_bos: bool = False  # unless the file says otherwise
  nfc: bool = False


_LLAMA3 = Family(lambda: _cut(_words(r"\p{N}{1,3}")), whole_words_first=True, add_bos=True)
_QWEN2 = Family(lambda: _cut(_words(r"\p{N}")), nfc=True)
_DIGITS_APART = Family(lambda: pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), _gpt2_bytes()]))

FAMILIES = {
    "default": Family(lambda: _cut(
        r"[\p{P}\$\+<=>\^~\|]+", _GPT2_WORDS, r"\p{N}+", "[0-9][0-9][0-9]")),
    "gpt-2": Family(_gpt2_bytes),
    "smollm": _DIGITS_APART,
    "starcoder": _DIGITS_APART,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
}


def byte_level(
    family: Family, vocabulary: dict[str, int], merges: list[tuple[str, str]]
) -> tokenizers.Tokenizer:
  """BPE over bytes (GPT-2 and later); raises whatever the bindings raise for wrong merges."""
  backend = tokenizers.Tokenizer(
      models.BPE(vocabulary, merges, ignore_merges=family.whole_words_first))
  if family.nfc:
    backend.normalizer = normalizers.NFC()
  backend.pre_tokenizer = family.cut()
  backend.decoder = decoders.ByteLevel()
  return backend


def _merges_by_score(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
  """Every split of a token into two tokens, the best token first.

  Sentencepiece merges the neighbours whose union scores best; this order makes BPE do the same.
  """
  merges = []
  for token, i in vocabulary.items():
    splits = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
    merges += [(-scores[i], vocabulary[a], vocabulary[b], a, b)
               for a, b in splits if a in vocabulary and b in vocabulary]
  return [(a, b) for *_, a, b in sorted(merges)]


def sentencepiece(
    vocabulary: dict[str, int], scores: list[float], unknown: str, leading_space: bool
) -> tokenizers.Tokenizer:
  """Sentencepiece's BPE over characters with bytes as the fallback (Llama 1 and 2, Mistral).

  Args:
    vocabulary: Ids by token.
    scores: Of each token; the greater, the earlier it is merged.
    unknown: The token for what has no bytes.
    leading_space: Whether a text is read as if a space stood before it.
  """
  backend = tokenizers.Tokenizer(models.BPE(
      vocabulary, _merges_by_score(vocabulary, scores), unk_token=unknown, fuse_unk=True,
      byte_fallback=True))
  prefix = [normalizers.Prepend(_SPACE)] if leading_space else []
  backend.normalizer = normalizers.Sequence(prefix + [normalizers.Replace(" ", _SPACE)])
  strip = [decoders.Strip(" ", 1, 0)] if leading_space else []
  backend.decoder = decoders.Sequence(
      [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()] + strip)
  return backend
