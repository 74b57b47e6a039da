"""Stop strings: texts that end an answer, wherever among tokens and blocks they fall."""

from typing import Callable, Sequence

from specjax.loading.tokenizer import Tokenizer
from specjax.types import Error


def ends(tokenizer: Tokenizer, strings: Sequence[str]) -> Callable[[int, list[int]], int | None]:
  """The `ends` of `decode.run_until`: keeps the tokens up to the one that completes a stop string.

  Raises:
    Error: an empty stop string.
  """
  if "" in strings:
    raise Error("--stop: a stop string must not be empty")
  searched = {}  # row -> tokens that are known to hold no stop string

  def holds_one(tokens: list[int]) -> bool:
    text = tokenizer.decode(tokens, skip_special_tokens=True)
    return any(string in text for string in strings)

  def end(row: int, tokens: list[int]) -> int | None:
    if not holds_one(tokens):
      searched[row] = len(tokens)
      return None
    lengths = range(searched.pop(row, 0), len(tokens) + 1)
    return next(length for length in lengths if holds_one(tokens[:length]))

  return end


def truncate(text: str, strings: Sequence[str]) -> str:
  """The text before the first stop string."""
  return text[:min((text.find(s) for s in strings if s in text), default=len(text))]


def partial_length(text: str, strings: Sequence[str]) -> int:
  """How many characters at the end of a text may be the beginning of a stop string."""
  lengths = range(1, max(map(len, strings), default=1))
  return max(
      (n for n in lengths if any(text.endswith(s[:n]) for s in strings if n < len(s))), default=0)
