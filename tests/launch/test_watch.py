"""The streamed text is the text, whole characters at a time."""

import io

from specjax.launch import dialogue, prompts, watch
from tests.launch import toys


class Terminal(io.StringIO):
  def isatty(self):
    return True


def test_the_streamed_text_is_the_measured_one():
  for temperature in (0.0, 1.0):
    setup, talk = toys.setup(temperature), prompts.single("abab")
    answer, = dialogue.answer(
        setup, [talk], toys.KEY, max_new_tokens=12, batch_size=1, template=True)
    out = io.StringIO()
    watch.watch(setup, toys.KEY, answer.prompt, 12, out)
    assert out.getvalue() == answer.text + "\n"


def test_a_terminal_shows_what_was_guessed():
  setup, out = toys.setup(), Terminal()
  prompt = dialogue.encode(setup, prompts.single("abcabcabcabc"), [], template=False)
  watch.watch(setup, toys.KEY, prompt, 30, out)
  shown = out.getvalue()
  assert "\033[1;32m" in shown
  bare = shown.replace("\033[1;32m", "").replace("\033[0m", "")
  plain = io.StringIO()
  watch.watch(setup, toys.KEY, prompt, 30, plain)
  assert bare == plain.getvalue()


class Bytes:
  """A tokenizer whose tokens are the bytes of UTF-8."""

  def decode(self, ids, skip_special_tokens=False):
    return bytes(ids).decode("utf-8", errors="replace")


def test_half_a_character_waits_for_the_rest():
  out = io.StringIO()
  writer = watch._Writer(Bytes(), out)
  seen = []
  for byte in "aé€".encode():
    writer.write([byte], "", "")
    seen.append(out.getvalue())
  assert seen == ["a", "a", "aé", "aé", "aé", "aé€"]
  writer.write([0xE2], "", "")
  writer.write([], "", "", last=True)
  assert out.getvalue() == "aé€\ufffd"  # the text did end in the middle of one
