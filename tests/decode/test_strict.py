"""Strict mode: one window for every pass makes texts bitwise independent of what drafts them."""

import jax
import numpy as np
import pytest

from specjax import decode, drafters, logits, verify
from specjax.models import table, transformer
from specjax.types import Error, Params
from tests.decode import toys

TARGET = transformer.target(toys.TINY)
PARAMS = Params(toys.tiny_params(1), toys.tiny_params(2))
PROMPTS, LENGTHS = np.array([[1, 5, 3, 7], [2, 9, 4, 4], [6, 0, 0, 0]]), np.array([4, 3, 1])
KEY = jax.random.key(2)


def text(decoder, rows=slice(0, 3)):
  return np.asarray(decode.generate(
      decoder, KEY, PARAMS, PROMPTS[rows], LENGTHS[rows], 50, rows=np.arange(3)[rows]).tokens)


def drafters_of(gamma):
  return {
      "ngram": drafters.ngram(gamma, shortest=1),
      "layer_skip": drafters.layer_skip(transformer.early_exit(toys.TINY, 2), gamma),
      "autoregressive": drafters.second_model(TARGET, gamma),
  }


@pytest.mark.parametrize("gamma", [1, 3, 7])
@pytest.mark.parametrize("name", ["ngram", "layer_skip", "autoregressive"])
def test_greedy_text_is_that_of_plain_decoding(name, gamma):
  cold = logits.temperature(0.0)
  plain = text(decode.autoregressive(TARGET, cold, strict=True))
  decoder = decode.speculative(
      TARGET, drafters_of(gamma)[name], verify.token(), cold, strict=True)
  np.testing.assert_array_equal(text(decoder), plain)


def test_rows_are_those_of_a_batch_of_one():
  decoder = decode.speculative(
      TARGET, drafters.ngram(3), verify.token(), logits.temperature(0.8), strict=True)
  together = text(decoder)
  for row in range(3):
    np.testing.assert_array_equal(text(decoder, slice(row, row + 1))[0], together[row])


def test_logits_are_the_same_bits_wherever_they_stand_in_the_window():
  """The state after n tokens has the same cache bits whether n came from one round or from many."""
  cold = logits.temperature(0.0)
  slow = decode.autoregressive(TARGET, cold, strict=True)
  fast = decode.speculative(
      TARGET, drafters.second_model(TARGET, 5), verify.token(), cold, strict=True)
  same = Params(PARAMS.target, PARAMS.target)  # the target drafts: whole blocks are accepted
  final = []
  for decoder in (slow, fast):
    rounds = decode.stream(decoder, KEY, same, PROMPTS[:1], LENGTHS[:1], 30)
    last = [(np.asarray(r.state.lengths), jax.tree.map(np.asarray, r.state.cache)) for r in rounds]
    final.append((len(last), last[-1]))
  assert final[0][0] == 30 and final[1][0] <= 6
  assert final[0][1][0] == final[1][1][0] == 34
  for one, other in zip(jax.tree.leaves(final[0][1][1]), jax.tree.leaves(final[1][1][1])):
    np.testing.assert_array_equal(one[:, :, :33], other[:, :, :33])


def test_a_draft_must_fit_the_window():
  with pytest.raises(ValueError, match="strict window of 8 rows.*draft of 8"):
    decode.speculative(
        TARGET, drafters.ngram(8), verify.token(), logits.chain(), strict=True)
  decode.speculative(TARGET, drafters.ngram(8), verify.token(), logits.chain(), strict=16)


def test_a_transform_is_a_function():
  with pytest.raises(ValueError, match="transform is a function of logits.*got 1.0"):
    decode.autoregressive(TARGET, 1.0)


def test_tables_know_no_window():
  """Tables are exact in any pass: strict and normal texts agree at every temperature."""
  target, warm = table.target(toys.random_table(0, order=2)), logits.temperature(0.9)
  drafter = table.drafter(toys.random_table(1, order=1), 3)
  prompts, lengths = PROMPTS[:, :1] % toys.VOCAB, np.ones(3, int)
  run = lambda strict: np.asarray(decode.generate(
      decode.speculative(target, drafter, verify.token(), warm, strict), KEY, None, prompts,
      lengths, 20).tokens)
  np.testing.assert_array_equal(run(True), run(False))


def test_a_tree_is_refused():
  """The path of a node stands in other slots than a chain's, so its logits have other bits."""
  target = table.target(toys.random_table(0, order=1))
  tree = toys.pairs_drafter(toys.random_table(1, order=1))
  with pytest.raises(Error, match="Strict mode and token trees exclude each other.*4 nodes"):
    decode.speculative(target, tree, verify.recursive(), logits.chain(), strict=True)
  decode.speculative(target, tree, verify.recursive(), logits.chain())
