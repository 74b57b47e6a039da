"""Transforms inside of decoding: penalties follow the text, rows may differ in their numbers."""

import jax
import numpy as np
import pytest

from specjax import decode, drafters, logits, verify
from specjax.models import table, transformer
from tests.decode import toys

KEY = jax.random.key(2)
TARGET = transformer.target(toys.TINY)
PROMPTS, LENGTHS = np.array([[1, 5, 3, 7], [2, 9, 4, 4]]), np.array([4, 3])
PENALTIES = {
    "repetition": logits.repetition_penalty(5.0),
    "presence": logits.presence_penalty(30.0),
    "frequency": logits.frequency_penalty(5.0),
}


def greedy_texts(penalty, drafter):
  transform = logits.chain(penalty, logits.temperature(0.0))
  if drafter is None:
    decoder = decode.autoregressive(TARGET, transform)
  else:
    decoder = decode.speculative(TARGET, drafter, verify.token(), transform)
  return np.asarray(decode.generate(
      decoder, KEY, toys.tiny_params(0), PROMPTS, LENGTHS, 40).tokens)


@pytest.mark.parametrize("name", [
    name if name == "repetition" else pytest.param(name, marks=pytest.mark.full)
    for name in PENALTIES])
def test_penalties_see_every_token_of_a_round(name):
  """Speculative text under a penalty is the plain one, which differs from that without it."""
  plain = greedy_texts(PENALTIES[name], None)
  exit_model = transformer.early_exit(toys.TINY, 2)
  for drafter in (drafters.ngram(4, shortest=1), drafters.layer_skip(exit_model, 3)):
    np.testing.assert_array_equal(greedy_texts(PENALTIES[name], drafter), plain)
  assert (plain != greedy_texts(logits.chain(), None)).any()


def test_frequency_penalty_counts_as_a_hand_written_loop():
  """Each token is the argmax of logits minus 0.7 times its count in the text before it."""
  table_logits = toys.random_table(3, order=1)
  transform = logits.chain(logits.frequency_penalty(0.7), logits.temperature(0.0))
  decoder = decode.speculative(
      table.target(table_logits), table.drafter(table_logits, 3), verify.token(), transform)
  text = [2]
  for _ in range(25):
    counts = np.bincount(text, minlength=toys.VOCAB)
    text.append(int(np.argmax(np.asarray(table_logits)[text[-1]] - np.float32(0.7) * counts)))
  got = decode.generate(decoder, KEY, None, np.array([[2]]), np.array([1]), 25)
  assert list(map(int, got.tokens[0])) == text[1:]


def test_rows_may_have_their_own_temperature():
  decoder = lambda t: decode.speculative(
      TARGET, drafters.ngram(3), verify.token(), logits.temperature(t))
  run = lambda t: np.asarray(decode.generate(
      decoder(t), KEY, toys.tiny_params(0), PROMPTS, LENGTHS, 20).tokens)
  mixed = run(np.array([0.0, 1.0]))
  np.testing.assert_array_equal(mixed[0], run(0.0)[0])
  np.testing.assert_array_equal(mixed[1], run(1.0)[1])


def test_top_k_of_one_is_greedy_and_top_p_bounds_the_support():
  drafter = drafters.layer_skip(transformer.early_exit(toys.TINY, 2), 3)
  run = lambda transform: np.asarray(decode.generate(
      decode.speculative(TARGET, drafter, verify.token(), transform), KEY, toys.tiny_params(0),
      PROMPTS, LENGTHS, 20).tokens)
  np.testing.assert_array_equal(run(logits.top_k(1)), run(logits.temperature(0.0)))
