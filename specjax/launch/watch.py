"""Shows a text while it is decoded: what the drafter guessed right stands out on a terminal."""

import sys

import jax
import numpy as np

from specjax import decode
from specjax.launch.build import Setup
from specjax.launch.play import pad

_BOLD, _PLAIN = "\033[1;32m", "\033[0m"


def watch(
    setup: Setup, key: jax.Array, prompt: list[int], max_new_tokens: int, stream=None) -> None:
  """Decodes one prompt, as row 0, and writes the text to `stream` (stdout) round by round."""
  stream = stream or sys.stdout
  marks = (_BOLD, _PLAIN) if stream.isatty() else ("", "")
  writer = _Writer(setup.model.tokenizer, stream)
  padded, lengths = pad([prompt])
  rounds = decode.stream(
      setup.speculative, key, setup.params, padded, lengths, max_new_tokens,
      eos=setup.model.tokenizer.eos_ids)
  for played in rounds:
    count = int(played.verdict.count[0])
    accepted = int(np.asarray(played.verdict.accepted[0]).sum())
    tokens = np.asarray(played.verdict.tokens[0])[:count].tolist()
    writer.write(tokens[:accepted], *marks)
    writer.write(tokens[accepted:], "", "")
  writer.write([], "", "", last=True)
  stream.write("\n")
  stream.flush()


class _Writer:
  """Writes the text of tokens as they come; a character may need several of them."""

  def __init__(self, tokenizer, stream):
    self._tokenizer, self._stream = tokenizer, stream
    self._tokens, self._shown = [], ""

  def write(self, tokens: list[int], before: str, after: str, last: bool = False) -> None:
    self._tokens += tokens
    text = self._tokenizer.decode(self._tokens, skip_special_tokens=True)
    if not last:
      text = text.rstrip("\ufffd")  # the rest of the character is still to come
    if len(text) > len(self._shown):
      self._stream.write(f"{before}{text[len(self._shown):]}{after}")
      self._stream.flush()
      self._shown = text
