"""A setup small enough to play conversations in milliseconds, with a tokenizer of characters."""

import jax
import jax.numpy as jnp
import numpy as np

from specjax import decode, drafters, logits, verify
from specjax.launch.build import Setup
from specjax.loading import Model
from specjax.models import table
from specjax.types import Params

ALPHABET = "abcdefg."  # one token each; "." ends a text
EOS = ALPHABET.index(".")


class Tokenizer:
  """Characters as tokens, and a chat template that wraps turns in letters."""

  eos_ids = (EOS,)

  def encode(self, text):
    return [ALPHABET.index(character) for character in text if character in ALPHABET]

  encode_raw = encode

  def encode_chat(self, messages):
    return self.encode(self.apply_chat_template(messages))

  def decode(self, ids, skip_special_tokens=False):
    return "".join(ALPHABET[i] for i in ids if not (skip_special_tokens and i == EOS))

  def apply_chat_template(self, messages):
    sides = {"user": "a", "assistant": "b"}
    return "".join(sides[message["role"]] + message["content"] for message in messages)


def setup(temperature: float = 0.0, gamma: int = 3, max_length: int | None = None) -> Setup:
  """Prompt lookup over a random table; the end of a text is unlikely but possible."""
  scores = np.random.default_rng(0).normal(size=(len(ALPHABET),) * 3) * 2
  scores[..., EOS] -= 2
  target = table.target(jnp.asarray(scores, jnp.float32))
  if max_length is not None:
    target = type(target)(**{**vars(target), "max_length": max_length})
  transform = logits.temperature(temperature)
  plain = decode.autoregressive(target, transform)
  fast = plain
  if gamma:
    fast = decode.speculative(target, drafters.ngram(gamma), verify.token(), transform)
  model = Model(None, jnp.zeros(()), Tokenizer(), "toy", "0" * 64)
  return Setup(model, Params(jnp.zeros(())), fast, plain, {"target": "0" * 64})


KEY = jax.random.key(0)
