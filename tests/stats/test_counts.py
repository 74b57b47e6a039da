"""Counts of rounds, by hand."""

import jax.numpy as jnp
import numpy as np

from specjax.stats import counts
from specjax.types import Verdict


def test_counts_of_a_tree_round_by_hand():
  """Row 0: root -> node 1 -> stop, its first sibling and its child judged. Row 1 is finished."""
  verdict = Verdict(
      tokens=jnp.asarray([[5, 9, -1], [-1, -1, -1]]), count=jnp.asarray([2, 0]),
      path=jnp.asarray([[1, -1], [-1, -1]]),
      tested=jnp.asarray([[True, True, False, True], [False] * 4]),
      accepted=jnp.asarray([[False, True, False, False], [False] * 4]))
  depths = jnp.asarray([[0, 0, 1, 1]] * 2)
  valid = jnp.asarray([[True, True, False, True]] * 2)
  once = counts.add(counts.zeros(2, 2), verdict, depths, valid)
  np.testing.assert_array_equal(once.rounds, [1, 0])
  np.testing.assert_array_equal(once.emitted, [2, 0])
  np.testing.assert_array_equal(once.drafting, [1, 0])  # one round, however wide its draft
  np.testing.assert_array_equal(once.drafted, [[2, 1], [0, 0]])
  np.testing.assert_array_equal(once.tested, [[2, 1], [0, 0]])
  np.testing.assert_array_equal(once.accepted, [[1, 0], [0, 0]])
  np.testing.assert_array_equal(once.lengths, [[0, 1, 0], [0, 0, 0]])
  twice = counts.add(once, verdict, depths, valid)
  np.testing.assert_array_equal(twice.tested, 2 * np.asarray(once.tested))
  empty = counts.add(twice, verdict, depths, jnp.zeros_like(valid))
  np.testing.assert_array_equal(empty.drafting, [2, 0])
  np.testing.assert_array_equal(empty.rounds, [3, 0])
  assert twice.emitted.dtype == jnp.int32


def test_plain_rounds_have_no_positions():
  verdict = Verdict(
      tokens=jnp.asarray([[3]]), count=jnp.asarray([1]), path=jnp.zeros((1, 0), int),
      tested=jnp.zeros((1, 0), bool), accepted=jnp.zeros((1, 0), bool))
  got = counts.add(counts.zeros(1, 0), verdict, jnp.zeros((1, 0), int), jnp.zeros((1, 0), bool))
  assert got.tested.shape == (1, 0) and got.drafting.tolist() == [0]
  np.testing.assert_array_equal(got.lengths, [[1]])
