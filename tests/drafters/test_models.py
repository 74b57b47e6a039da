"""Drafters that are models: an equal model is always right, caches never fall behind."""

import jax
import numpy as np
import pytest

from specjax import decode, drafters, logits, verify
from specjax.models import table, transformer
from specjax.types import Params
from tests.decode import toys

TARGET = transformer.target(toys.TINY)
PROMPTS, LENGTHS = np.array([[1, 5, 3, 7], [2, 9, 4, 4], [6, 0, 0, 0]]), np.array([4, 3, 1])
KEY = jax.random.key(8)


def generate(drafter, transform, params, rule=verify.token(), target=TARGET, tokens=40):
  decoder = decode.speculative(target, drafter, rule, transform)
  return decode.generate(decoder, KEY, params, PROMPTS, LENGTHS, tokens)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("gamma", [1, 4])
def test_an_equal_drafter_is_always_accepted(gamma, temperature):
  """A cache that misses the last drafted token, or holds it twice, would show as a rejection.

  Two passes of other widths round differently, so p / q may fall below 1 by 1e-5 at temperature 1:
  fewer than one rejection in a hundred runs of this test.
  """
  params = Params(toys.tiny_params(0), toys.tiny_params(0))
  got = generate(drafters.second_model(TARGET, gamma), logits.temperature(temperature), params)
  np.testing.assert_array_equal(got.stats.accepted, got.stats.tested)
  np.testing.assert_array_equal(got.stats.rounds, -(-40 // (gamma + 1)))


def test_the_whole_target_as_its_own_early_exit_is_always_accepted():
  whole = transformer.early_exit(toys.TINY, toys.TINY.num_layers)
  got = generate(
      drafters.layer_skip(whole, 3), logits.temperature(1.0), Params(toys.tiny_params(0)))
  np.testing.assert_array_equal(got.stats.accepted, got.stats.tested)
  np.testing.assert_array_equal(got.stats.rounds, 10)


def test_layer_skip_leaves_the_target_unharmed():
  """Its drafts overwrite the shared cache; greedy text is the plain one all the same."""
  params, cold = Params(toys.tiny_params(1)), logits.temperature(0.0)
  plain = decode.generate(
      decode.autoregressive(TARGET, cold), KEY, params, PROMPTS, LENGTHS, 40)
  for layers in (1, 2):
    drafter = drafters.layer_skip(transformer.early_exit(toys.TINY, layers), 4)
    np.testing.assert_array_equal(generate(drafter, cold, params).tokens, plain.tokens)


def test_table_drafter_equals_autoregressive_over_the_same_table():
  """Two ways to draft from one table give the same texts and the same acceptance."""
  target = table.target(toys.random_table(0, order=2))
  draft = toys.random_table(1, order=2)
  prompts = PROMPTS % toys.VOCAB
  run = lambda drafter: decode.generate(
      decode.speculative(target, drafter, verify.token(), logits.temperature(0.8)), KEY, None,
      prompts, LENGTHS, 30)
  one, other = run(table.drafter(draft, 3)), run(drafters.second_model(table.target(draft), 3))
  np.testing.assert_array_equal(one.tokens, other.tokens)
  np.testing.assert_array_equal(one.stats.accepted, other.stats.accepted)


@pytest.mark.parametrize("make", [
    lambda: drafters.second_model(TARGET, 0),
    lambda: drafters.layer_skip(transformer.early_exit(toys.TINY, 1), 0),
    lambda: table.drafter(toys.random_table(0, order=1), 0),
])
def test_a_draft_has_at_least_one_token(make):
  with pytest.raises(ValueError, match="gamma = 0"):
    make()
