"""Shapes, written out."""

from specjax.trees import topology


def test_a_chain():
  assert topology.chain(3) == (-1, 0, 1)
  assert topology.chain(0) == ()


def test_paths_stand_one_after_the_other():
  assert topology.paths(2, 3) == (-1, 0, 1, -1, 3, 4)
  assert topology.paths(1, 4) == topology.chain(4)


def test_branching_goes_level_by_level():
  assert topology.branching((2, 2)) == (-1, -1, 0, 0, 1, 1)
  assert topology.branching((3, 1)) == (-1, -1, -1, 0, 1, 2)
  assert topology.branching((1, 1)) == topology.chain(2)
  assert topology.branching((3,)) == topology.paths(3, 1)
