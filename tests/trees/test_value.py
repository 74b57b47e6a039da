"""The value of the best tree, against an enumeration of all trees."""

import functools

import numpy as np
import pytest

from specjax import theory

WIDE, NARROW = (0.6, 0.2, 0.08, 0.04), (0.8, 0.1)


@functools.lru_cache(None)
def _forests(nodes: int) -> tuple:
  """Every ordered forest of `nodes` nodes; a tree is the tuple of its subtrees."""
  if nodes == 0:
    return ((),)
  return tuple(
      (first,) + rest
      for size in range(1, nodes + 1)
      for first in _forests(size - 1)
      for rest in _forests(nodes - size))


def _value(tree: tuple, acceptance: tuple) -> float:
  if len(tree) > len(acceptance):
    return -np.inf
  return 1 + sum(p * _value(child, acceptance) for p, child in zip(acceptance, tree))


def _depth(tree: tuple) -> int:
  return max((1 + _depth(child) for child in tree), default=0)


@pytest.mark.parametrize("acceptance", [WIDE, NARROW, (0.1, 0.5, 0.3), (0.9,), (0.0, 0.0)])
@pytest.mark.parametrize("depth", [None, 0, 1, 2])
def test_against_every_tree(acceptance, depth):
  values = [
      max((_value(tree, acceptance) for tree in _forests(nodes - 1)
           if depth is None or _depth(tree) <= depth), default=-np.inf)
      for nodes in range(1, 9)]
  best = np.maximum.accumulate(values)  # of at most n nodes
  np.testing.assert_allclose(theory.tree_value(acceptance, 8, depth), best, rtol=1e-14)


def test_reference_values():
  np.testing.assert_allclose(
      theory.tree_value(WIDE, 16)[[0, 1, 2, 3, 4, 5, 6, 7, 15]],
      [1, 1.6, 1.96, 2.176, 2.376, 2.5056, 2.6256, 2.7456, 3.262], atol=5e-4)
  np.testing.assert_allclose(theory.tree_value(WIDE, 8)[-1], 2.7456, atol=1e-9)
  np.testing.assert_allclose(
      theory.tree_value(NARROW, 16)[[4, 7, 11, 15]], [3.3616, 4.1611392, 4.6705, 4.9851], atol=5e-5)


def test_one_child_a_node_is_the_chain_formula():
  np.testing.assert_allclose(
      theory.tree_value((0.8,), 12), theory.expected_tokens(0.8, np.arange(12)), rtol=1e-13)


def test_branching_wins_from_twelve_nodes_on():
  chain = theory.expected_tokens(0.8, np.arange(16))
  gain = theory.tree_value(NARROW, 16) - chain
  assert (np.abs(gain[:11]) < 1e-12).all() and (gain[11:] > 1e-3).all()


@pytest.mark.parametrize("acceptance,nodes,depth,message", [
    ((0.7, 0.4), 4, None, "sum to at most 1"), ((-0.1,), 4, None, "at least 0"),
    ((float("nan"),), 4, None, "acceptance"), (((0.1,),), 4, None, "float"),
    ((0.5,), 0, None, "nodes"), ((0.5,), 3, -1, "depth")])
def test_bad_values(acceptance, nodes, depth, message):
  with pytest.raises(ValueError, match=message):
    theory.tree_value(acceptance, nodes, depth)
