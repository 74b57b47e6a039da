"""Masks and depths of trees, against a walk over Python lists."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax.trees import masks

TREES = [[], [-1], [-1, 0, 1, 2], [-1, -1, -1], [-1, 0, -1, 2, 0, 1, 3], [-1, 0, 0, 2, 2, 1, -1]]


def ancestors(parents, node):
  """The places of a node's path in the window, the root first."""
  return [0] if node == -1 else ancestors(parents, parents[node]) + [node + 1]


@pytest.mark.parametrize("parents", TREES)
def test_masks_and_depths_follow_parents(parents):
  array = jnp.asarray(parents, jnp.int32)
  expected = np.zeros((len(parents) + 1,) * 2, bool)
  for node in range(-1, len(parents)):
    expected[node + 1, ancestors(parents, node)] = True
  np.testing.assert_array_equal(masks.window_mask(array), expected)
  np.testing.assert_array_equal(masks.window_depths(array), expected.sum(1) - 1)


def test_a_chain_is_causal():
  chain = jnp.arange(-1, 6, dtype=jnp.int32)
  np.testing.assert_array_equal(masks.window_mask(chain), np.tril(np.ones((8, 8), bool)))
  np.testing.assert_array_equal(masks.window_depths(chain), np.arange(8))


def test_under_vmap():
  batch = jnp.asarray([[-1, 0, 1], [-1, -1, 1]], jnp.int32)
  got = jax.vmap(masks.window_depths)(batch)
  np.testing.assert_array_equal(got, [[0, 1, 2, 3], [0, 1, 1, 2]])
