"""Trees in decoding: the accepted path is committed, and the cache forgets the other branches."""

import jax
import numpy as np

from specjax import decode, logits, verify
from specjax.models import table, transformer
from tests.decode import toys

KEY = jax.random.key(4)
PROMPTS, LENGTHS = np.array([[1, 2, 3], [2, 0, 0]]), np.array([3, 1])


def test_greedy_tree_text_is_the_plain_text_of_a_table():
  target = table.target(toys.random_table(0, order=3))
  drafter = toys.pairs_drafter(toys.random_table(1, order=1))
  cold = logits.temperature(0.0)
  plain = decode.generate(decode.autoregressive(target, cold), KEY, None, PROMPTS, LENGTHS, 40)
  tree = decode.generate(
      decode.speculative(target, drafter, verify.greedy(), cold), KEY, None, PROMPTS, LENGTHS, 40)
  np.testing.assert_array_equal(tree.tokens, plain.tokens)
  assert tree.stats.rounds.max() < 40  # some second children were followed


def test_greedy_tree_text_is_the_plain_text_of_a_transformer():
  """The drafted vocabulary is that of the table, a part of the model's."""
  target, params = transformer.target(toys.TINY), toys.tiny_params(1)
  wide = np.full((13, 13), -9.0, np.float32)
  wide[:, :4] = np.random.default_rng(0).normal(size=(13, 4))
  cold = logits.chain(logits.forbid(np.arange(4, 13)), logits.temperature(0.0))
  plain = decode.generate(decode.autoregressive(target, cold), KEY, params, PROMPTS, LENGTHS, 60)
  tree = decode.generate(
      decode.speculative(target, toys.pairs_drafter(jax.numpy.asarray(wide)), verify.match(), cold),
      KEY, params, PROMPTS, LENGTHS, 60)
  np.testing.assert_array_equal(tree.tokens, plain.tokens)
  assert tree.stats.accepted.sum() > 10
  assert tree.stats.tested.sum() > tree.stats.accepted.sum()
  np.testing.assert_array_equal(tree.stats.lengths.sum(1), tree.stats.rounds)
