"""Fingerprints of logits: equal bits and nothing else give equal ones."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.audits import fingerprint
from specjax import decode, drafters, logits, verify
from specjax.models import table, transformer
from tests.decode import toys


def test_one_changed_bit_or_two_swapped_tokens_change_it():
  x = np.random.default_rng(0).normal(size=5000).astype(np.float32)
  print_ = int(fingerprint.fingerprint(jnp.asarray(x)))
  seen = {print_}
  for place in range(0, 5000, 7):
    changed = x.copy()
    changed.view(np.uint32)[place] ^= 1 << (place % 32)
    seen.add(int(fingerprint.fingerprint(jnp.asarray(changed))))
    swapped = x.copy()
    swapped[[place, (place + 1) % 5000]] = swapped[[(place + 1) % 5000, place]]
    seen.add(int(fingerprint.fingerprint(jnp.asarray(swapped))))
  # 1 + 2 * 715 values of 2^32: a chance collision has probability 2.4e-4, and the seed is fixed.
  assert len(seen) == 1 + 2 * 715


def test_it_does_not_depend_on_jit_or_batch():
  x = jnp.asarray(np.random.default_rng(1).normal(size=(3, 4, 700)), jnp.float32)
  one = fingerprint.fingerprint(x)
  np.testing.assert_array_equal(jax.jit(fingerprint.fingerprint)(x), one)
  np.testing.assert_array_equal(fingerprint.fingerprint(x[1, 2]), one[1, 2])


def test_a_fingerprinted_target_decodes_the_same_text_and_remembers_its_logits():
  target, params = transformer.target(toys.TINY), toys.tiny_params(1)
  warm = logits.temperature(0.9)
  prompts, lengths, key = np.array([[1, 5, 3, 7]]), np.array([4]), jax.random.key(1)
  build = lambda target: decode.speculative(target, drafters.ngram(3), verify.gumbel(), warm)
  plain = decode.generate(build(target), key, params, prompts, lengths, 20)
  marked = build(fingerprint.fingerprinted(target))
  state = marked.init(params, prompts, lengths, max_new_tokens=20)
  state, _ = decode.run(marked, key, params, state)
  np.testing.assert_array_equal(state.tokens[0, 4:24], plain.tokens[0])
  # The last pass of another width, over the finished text, gives logits of almost the same values.
  assert len(set(np.asarray(state.cache[1][0, 3:23]).tolist())) > 10


def test_trees_keep_the_fingerprints_of_the_accepted_path():
  """The prints of a tree's text are those of plain decoding; of tables, which round nothing."""
  target = fingerprint.fingerprinted(table.target(toys.random_table(0, order=2)))
  tree = toys.pairs_drafter(toys.random_table(1, order=1))
  cold = logits.temperature(0.0)
  key, found = jax.random.key(1), []
  for decoder in (
      decode.autoregressive(target, cold),
      decode.speculative(target, tree, verify.greedy(), cold)):
    state = decoder.init(None, np.array([[1, 2, 3]]), np.array([3]), max_new_tokens=40)
    state, stats = decode.run(decoder, key, None, state)
    found.append((np.asarray(state.tokens[0, :43]), np.asarray(state.cache[1][0, 2:42]), stats))
  np.testing.assert_array_equal(found[0][0], found[1][0])
  np.testing.assert_array_equal(found[0][1], found[1][1])
  assert found[1][2].accepted.sum() > 5
