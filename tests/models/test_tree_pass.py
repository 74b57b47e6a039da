"""Token trees: a node sees its own path alone, and an accepted path can be kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax.models import transformer
from specjax.types import PAD
from tests.models import reference, toys
from tests.models.toys import lengths_of, LLAMA, ROUNDING, tokens_of

TARGET = transformer.target(LLAMA)
PARAMS = toys.params_of(LLAMA)
TEXT = tokens_of(2, 12, seed=3)
LENGTHS = lengths_of(5, 9)  # committed tokens before the root of each row
# Node n's parent; -1 is the root, the last committed token, which stands at index 0 of the window.
TREES = np.array([[-1, -1, 0, 1, 0, 3, 2], [-1, 0, 1, -1, 3, 3, 4]], np.int32)
NODES = TREES.shape[1]
WINDOW = tokens_of(2, NODES + 1, seed=4)  # root first


def path_to(parents, node):
  """Nodes from the root down to `node`, the root itself left out."""
  path = []
  while node >= 0:
    path.insert(0, node)
    node = parents[node]
  return path


def masks_and_depths():
  mask, depths = np.zeros((2, NODES + 1, NODES + 1), bool), np.zeros((2, NODES + 1), np.int32)
  for row, parents in enumerate(TREES):
    mask[row, :, 0] = True
    for node in range(NODES):
      path = path_to(parents, node)
      mask[row, node + 1, np.add(path, 1)] = True
      depths[row, node + 1] = len(path)
  return mask, depths


@jax.jit
def forward(cache, tokens, lengths, depths=None, mask=None):
  return TARGET.forward(PARAMS, cache, tokens, lengths, depths, mask)


def tree_pass():
  cache = forward(TARGET.init(PARAMS, 2, 24), TEXT, np.zeros(2, np.int32)).cache
  mask, depths = masks_and_depths()
  return forward(cache, WINDOW, LENGTHS, depths, mask)


def words(row, path):
  """The committed text of a row, its root and the tokens of a path."""
  return np.concatenate([TEXT[row, :LENGTHS[row]], WINDOW[row, [0, *np.add(path, 1)]]])


def test_every_node_is_scored_as_the_end_of_its_path():
  logits = tree_pass().logits
  for row, parents in enumerate(TREES):
    for node in range(-1, NODES):
      expected, _ = reference.forward(LLAMA, PARAMS, words(row, path_to(parents, node)))
      np.testing.assert_allclose(logits[row, node + 1], expected[-1], **ROUNDING)


def test_other_branches_do_not_matter():
  base, (mask, depths) = tree_pass().logits, masks_and_depths()
  cache = forward(TARGET.init(PARAMS, 2, 24), TEXT, np.zeros(2, np.int32)).cache
  for node in range(NODES):
    changed = WINDOW.copy()
    changed[:, node + 1] = (changed[:, node + 1] + 1) % LLAMA.vocab_size
    logits = forward(cache, changed, LENGTHS, depths, mask).logits
    for row in range(2):
      moved = (logits[row] != base[row]).any(-1)
      np.testing.assert_array_equal(moved, mask[row, :, node + 1])


@pytest.mark.parametrize("paths", [
    [[1, 3, 5, PAD], [3, 4, 6, PAD]], [[0, 4, PAD, PAD], [0, 1, 2, PAD]],
    [[PAD] * 4, [3, 5, PAD, PAD]]])
def test_a_committed_path_is_as_good_as_a_fresh_prefill(paths):
  cache = jax.jit(TARGET.commit)(tree_pass().cache, LENGTHS, np.array(paths, np.int32))
  kept = [[node for node in path if node != PAD] for path in paths]
  after = LENGTHS + 1 + np.array([len(path) for path in kept], np.int32)
  following = tokens_of(2, 3, seed=6)
  logits = forward(cache, following, after).logits
  for row in range(2):
    text = np.concatenate([words(row, kept[row]), following[row]])
    expected, _ = reference.forward(LLAMA, PARAMS, text)
    np.testing.assert_allclose(logits[row], expected[after[row]:], **ROUNDING)


def test_commit_moves_exactly_the_named_entries():
  before = tree_pass().cache
  path = np.array([[1, 3, 5, PAD], [PAD] * 4], np.int32)
  after = TARGET.commit(before, LENGTHS, path)
  for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after)):
    expected = np.array(old)
    expected[0, :, 6:9] = old[0][:, [7, 9, 11]]
    np.testing.assert_array_equal(new, expected)


def test_a_causal_mask_and_running_depths_are_the_default():
  cache = forward(TARGET.init(PARAMS, 2, 24), TEXT, np.zeros(2, np.int32)).cache
  plain = forward(cache, WINDOW, LENGTHS)
  depths = np.tile(np.arange(NODES + 1, dtype=np.int32), (2, 1))
  mask = np.tile(np.tri(NODES + 1, dtype=bool), (2, 1, 1))
  given = forward(cache, WINDOW, LENGTHS, depths, mask)
  jax.tree.map(np.testing.assert_array_equal, given, plain)


def test_a_path_in_order_moves_nothing():
  before = tree_pass().cache
  path = jnp.tile(jnp.arange(4, dtype=jnp.int32), (2, 1))
  jax.tree.map(np.testing.assert_array_equal, TARGET.commit(before, LENGTHS, path), before)
