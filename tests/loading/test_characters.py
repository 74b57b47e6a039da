"""The table models: laws that are laws, a tokenizer without surprises."""

import numpy as np
import pytest

from specjax import loading
from specjax.loading import characters
from specjax.models import markov
from specjax.types import Error


@pytest.mark.parametrize("order", characters.ORDERS)
def test_rows_are_laws_of_full_support(order):
  model = characters.load(order)
  law = np.exp(model.params.astype(np.float64))
  assert law.shape == (model.config.vocab_size,) * (order + 1) and law.min() > 0
  assert np.abs(law.sum(-1) - 1).max() < 1e-6


def test_a_longer_context_predicts_better():
  texts = characters._texts()
  def loss(order):
    law = markov.estimate(texts, order, len(characters._SYMBOLS))
    seen = [law[tuple(text[end - order:end + 1])] for text in texts for end in range(2, len(text))]
    return -np.log(seen).mean()
  assert loss(2) + 0.3 < loss(1) and loss(1) + 0.3 < loss(0) < np.log(len(characters._SYMBOLS))


def test_characters_are_tokens():
  tokenizer = characters.load(1).tokenizer
  ids = tokenizer.encode("Ab, c\n!")
  assert tokenizer.decode(ids) == "ab, c  "
  assert tokenizer.decode([*tokenizer.encode("ab"), *tokenizer.eos_ids], True) == "ab"
  assert tokenizer.vocab_size == characters.load(1).config.vocab_size


def test_the_same_table_every_time():
  assert characters.load(2).sha256 == characters.load(2).sha256 != characters.load(1).sha256


@pytest.mark.parametrize("order", [-1, 3])
def test_other_orders_are_refused(order):
  with pytest.raises(loading.LoadError, match=r"table:-?\d: the order .* \(0, 1, 2\)"):
    characters.load(order)


def test_a_table_has_nothing_to_capture():
  model = characters.load(1)
  assert model.target().vocab_size == model.config.vocab_size
  with pytest.raises(Error, match="table:1: a table has no hidden states"):
    model.target((0,))
