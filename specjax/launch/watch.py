"""Shows a text while it is decoded: what the drafter guessed right stands out on a terminal."""

import sys
from typing import Sequence

import jax
import numpy as np

from specjax import decode
from specjax.launch import stops
from specjax.launch.build import Setup

_BOLD, _PLAIN = "\033[1;32m", "\033[0m"


def watch(
    setup: Setup, key: jax.Array, prompt: list[int], max_new_tokens: int,
    stream=None, stop: Sequence[str] = ()) -> None:
  """Decodes one prompt, as row 0, and writes the text to `stream` (stdout) round by round.

  The text ends before the first of the strings `stop`. What may be the beginning of one is
  held back until the next round.
  """
  stream = stream or sys.stdout
  marks = (_BOLD, _PLAIN) if stream.isatty() else ("", "")
  writer = _Writer(setup.model.tokenizer, stream, stop)
  padded, lengths = decode.pad([prompt])
  rounds = decode.stream(
      setup.speculative, key, setup.params, padded, lengths, max_new_tokens,
      eos=setup.model.tokenizer.eos_ids)
  for played in rounds:
    count = int(played.verdict.count[0])
    accepted = int(np.asarray(played.verdict.accepted[0]).sum())
    tokens = np.asarray(played.verdict.tokens[0])[:count].tolist()
    writer.write(tokens[:accepted], *marks)
    writer.write(tokens[accepted:], "", "")
    if writer.ended:
      break
  writer.write([], "", "", last=True)
  stream.write("\n")
  stream.flush()


class _Writer:
  """Writes the text of tokens as they come; a character may need several of them."""

  def __init__(self, tokenizer, stream, stop=()):
    self._tokenizer, self._stream, self._stop = tokenizer, stream, stop
    self._tokens, self._shown, self.ended = [], "", False

  def write(self, tokens: list[int], before: str, after: str, last: bool = False) -> None:
    self._tokens += tokens
    text = self._tokenizer.decode(self._tokens, skip_special_tokens=True)
    if not last:
      text = text.rstrip("\ufffd")  # the rest of the character is still to come
    self.ended |= any(string in text for string in self._stop)
    text = stops.truncate(text, self._stop)
    if not (last or self.ended):
      text = text[:len(text) - stops.partial_length(text, self._stop)]
    if len(text) > len(self._shown):
      self._stream.write(f"{before}{text[len(self._shown):]}{after}")
      self._stream.flush()
      self._shown = text
