"""The default model: at temperature 0 every drafter leaves the text of plain decoding.

In strict mode the texts are equal bit for bit. In normal mode passes of other widths round
differently, and a near-tie between two tokens may flip: then, and only then, texts may part, so a
first difference must come with a top-2 margin below 1e-3 (logits differ by up to 2e-4 here).
"""

import jax
import numpy as np
import pytest

from specjax import decode, drafters, logits, verify
from specjax.launch import prompts as prompt_sets
from specjax.models import transformer
from specjax.types import Params

KEY, COLD = jax.random.key(0), logits.temperature(0.0)
NEAR_TIE = 1e-3  # logits


class Setting:
  """The model, eight prompts, and what plain decoding answers to them."""

  def __init__(self, model):
    self.target = transformer.target(model.config)
    self.config = model.config
    params = jax.tree.map(jax.numpy.asarray, model.params)
    self.params = Params(params, params)  # the second model is the same one, for lack of a smaller
    chosen = prompt_sets.load("mini")[::2][:8]
    texts = [model.tokenizer.apply_chat_template([{"role": "user", "content": c.turns[0]}])
             for c in chosen]
    encoded = [model.tokenizer.encode(text) for text in texts]
    self.lengths = np.array([len(ids) for ids in encoded])
    self.prompts = np.zeros((len(encoded), self.lengths.max()), int)
    for row, ids in enumerate(encoded):
      self.prompts[row, :len(ids)] = ids
    self.plain = {}

  def texts(self, decoder, count, tokens, batch):
    rows = [np.arange(first, min(first + batch, count)) for first in range(0, count, batch)]
    return np.concatenate([decode.generate(
        decoder, KEY, self.params, self.prompts[r], self.lengths[r], tokens, rows=r).tokens
        for r in rows])

  def plain_texts(self, count, tokens, strict):
    if (count, tokens, strict) not in self.plain:
      decoder = decode.autoregressive(self.target, COLD, strict)
      self.plain[count, tokens, strict] = self.texts(decoder, count, tokens, 1)
    return self.plain[count, tokens, strict]

  def drafter(self, name, gamma):
    if name == "ngram":
      return drafters.ngram(gamma)
    if name == "layer_skip":
      return drafters.layer_skip(transformer.early_exit(self.config, 6), gamma)
    return drafters.second_model(self.target, gamma)

  def margin(self, row, answer):
    """The gap between the two best logits after the prompt and the shared part of the answer."""
    text = np.concatenate([self.prompts[row, :self.lengths[row]], answer]).astype(int)
    cache = self.target.init(self.params.target, 1, len(text))
    output = self.target.forward(
        self.params.target, cache, text[None], np.zeros(1, np.int32))
    best = np.sort(np.asarray(output.logits[0, -1]))[-2:]
    return best[1] - best[0]


@pytest.fixture(scope="module")
def setting(default_model):
  return Setting(default_model)


def check(setting, name, gamma, batch, count, tokens, strict):
  plain = setting.plain_texts(count, tokens, strict)
  decoder = decode.speculative(
      setting.target, setting.drafter(name, gamma), verify.token(), COLD, strict)
  texts = setting.texts(decoder, count, tokens, batch)
  if strict:
    np.testing.assert_array_equal(texts, plain)
    return
  for row in np.flatnonzero((texts != plain).any(1)):
    parted = np.argmax(texts[row] != plain[row])
    assert setting.margin(row, plain[row, :parted]) < NEAR_TIE


@pytest.mark.parametrize("name, gamma, batch", [
    ("ngram", 3, 1), ("layer_skip", 2, 2),
    pytest.param("autoregressive", 1, 1, marks=pytest.mark.full)])
def test_greedy_text_is_the_plain_text(setting, name, gamma, batch):
  check(setting, name, gamma, batch, count=2, tokens=24, strict=False)


def test_strict_text_is_the_same_bits(setting):
  check(setting, "ngram", 7, 1, count=2, tokens=24, strict=8)


@pytest.mark.full
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("gamma", [1, 3, 5, 8])
@pytest.mark.parametrize("name", ["ngram", "layer_skip", "autoregressive"])
def test_greedy_text_is_the_plain_text_at_length(setting, name, gamma, batch):
  check(setting, name, gamma, batch, count=8, tokens=128, strict=False)


@pytest.mark.full
@pytest.mark.parametrize("name, gamma", [("ngram", 3), ("ngram", 8), ("layer_skip", 3)])
def test_strict_text_is_the_same_bits_at_length(setting, name, gamma):
  check(setting, name, gamma, 1, count=8, tokens=128, strict=16)
