"""Text to token ids and back, and chat templates."""

import dataclasses
import functools
from typing import Sequence

import tokenizers

from specjax.loading import chat
from specjax.loading.error import LoadError
from specjax.types import Error


@dataclasses.dataclass(frozen=True)
class Tokenizer:
  """The tokenizer of a checkpoint.

  Attributes:
    backend: The tokenizer proper.
    eos_ids: Tokens that end a text.
    bos_id: The token to put before a raw prompt; None for a model that was trained without one.
    chat_template: Jinja source, or None.
    template_strings: Special tokens by the name under which templates know them (`bos_token`, ...).
    source: The file that it came from, for messages.
  """

  backend: tokenizers.Tokenizer
  eos_ids: tuple[int, ...]
  bos_id: int | None
  chat_template: str | None
  template_strings: dict[str, str]
  source: str

  @functools.cached_property
  def vocab_size(self) -> int:
    """One more than the largest id. A model's vocabulary may be padded beyond it."""
    return max(self.backend.get_vocab(with_added_tokens=True).values()) + 1

  def encode(self, text: str) -> list[int]:
    """Token ids. Special tokens written out in the text are recognised, none are added.

    A byte that the vocabulary lacks (SmolLM2's has no U+0004) is left out, as everywhere else.

    Raises:
      Error: the text is not valid Unicode (a lone surrogate).
    """
    try:
      return self.backend.encode(text, add_special_tokens=False).ids
    except (TypeError, UnicodeEncodeError) as error:
      raise Error(f"Only valid Unicode text can be encoded, got {text!r:.80}.") from error

  def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
    """The text of the ids; bytes that are not UTF-8 become U+FFFD.

    Raises:
      Error: an id is negative, as PAD is.
    """
    ids = [int(i) for i in ids]
    if min(ids, default=0) < 0:
      raise Error(f"Token ids are not negative, got {min(ids)}; cut the padding off first.")
    return self.backend.decode(ids, skip_special_tokens=skip_special_tokens)

  def apply_chat_template(
      self, messages: Sequence[dict], add_generation_prompt: bool = True) -> str:
    """The conversation as the text that the model was trained on, to be encoded as it is.

    Args:
      messages: `{"role": ..., "content": ...}` in order.
      add_generation_prompt: Ends the text where the assistant's answer begins.

    Raises:
      LoadError: there is no template, or it refuses the conversation, or it is malicious.
    """
    if self.chat_template is None:
      raise LoadError(f"{self.source}: there is no chat template; give a raw prompt instead.")
    return chat.render(
        self.chat_template, list(messages), add_generation_prompt, self.template_strings,
        self.source)

  def encode_raw(self, text: str) -> list[int]:
    """Token ids of a prompt as it is, behind the token that texts begin with, if there is one.

    Raises:
      Error: as `encode`.
    """
    return ([] if self.bos_id is None else [self.bos_id]) + self.encode(text)

  def encode_chat(self, messages: Sequence[dict]) -> list[int]:
    """Token ids of a conversation, up to where the assistant's next answer begins.

    Raises:
      LoadError: as `apply_chat_template`.
      Error: as `encode`.
    """
    return self.encode(self.apply_chat_template(messages))
