"""Traversal verification: lossless over trees of every kind, the paper's numbers, its mutants."""

import functools

import jax
import numpy as np
import pytest

from specjax import verify
from specjax.trees import topology
from tests.verify import papers, rounds, toys

UNEVEN = (-1, 0, -1, 0, 2)
TREES = [
    (topology.chain(3), rounds.INDEPENDENT, 50),
    (topology.branching((2, 1)), rounds.WITHOUT, 50),
    (topology.branching((2, 2)), rounds.WITHOUT, 10),
    (topology.branching((3,)), rounds.WITHOUT, 50),
    (UNEVEN, rounds.WITHOUT, 15),
    (topology.branching((3,)), rounds.INDEPENDENT, 50),
    (topology.paths(2, 2), rounds.INDEPENDENT, 50),
    (topology.paths(2, 2), rounds.MERGED, 50),
    (UNEVEN, rounds.INDEPENDENT, 15),
    (UNEVEN, rounds.MERGED, 15),
]


@functools.cache
def systems(number):
  return rounds.random(1, number, 3, 3) + list(rounds.degenerate(3, 3).values())


@pytest.mark.parametrize("parents, siblings, number", TREES)
def test_lossless_over_random_and_degenerate_systems(parents, siblings, number):
  tv, _ = rounds.outcomes(verify.traversal(), systems(number), parents, siblings)
  assert tv.max() < 1e-12


def test_lossless_over_more_tokens():
  some = rounds.random(2, 20, 5, 2) + list(rounds.degenerate(5, 2).values())
  tv, _ = rounds.outcomes(verify.traversal(), some, topology.branching((2, 1)), rounds.WITHOUT)
  assert tv.max() < 1e-12


@pytest.mark.parametrize("parents, siblings, name, tau", [
    (topology.chain(2), rounds.INDEPENDENT, "AB", 11 / 9),
    (topology.branching((2, 1)), rounds.WITHOUT, "AB", 16 / 9),
    (topology.branching((2, 2)), rounds.WITHOUT, "AB", 2),
    (topology.chain(2), rounds.INDEPENDENT, "P3", 5 / 4),
    (topology.branching((2, 1)), rounds.WITHOUT, "P3", 157 / 100),
    (topology.branching((2, 2)), rounds.WITHOUT, "P3", 541 / 320),
    (topology.chain(2), rounds.INDEPENDENT, "S3", 17 / 20),
    (topology.branching((2, 1)), rounds.WITHOUT, "S3", 781 / 700),
    (topology.branching((2, 2)), rounds.WITHOUT, "S3", 37746 / 30625),
    (topology.paths(2, 2), rounds.INDEPENDENT, "AB", 38 / 27),
    (topology.paths(2, 2), rounds.INDEPENDENT, "P3", 727 / 500),
    (topology.paths(2, 2), rounds.INDEPENDENT, "S3", 1),
    (topology.paths(2, 2), rounds.MERGED, "AB", 115 / 81),
    (topology.paths(2, 2), rounds.MERGED, "P3", 613 / 440),
    (topology.paths(2, 2), rounds.MERGED, "S3", 1210537 / 1190000),
])
def test_expected_acceptance(parents, siblings, name, tau):
  got = rounds.outcomes(verify.traversal(), [rounds.pair(name, 2)], parents, siblings)
  np.testing.assert_allclose(np.ravel(got), [0, tau], rtol=0, atol=1e-12)


def decide(case):
  with jax.enable_x64(True):
    return jax.tree.map(np.asarray, jax.jit(verify.traversal().decide)(case.draft, case.log_p))


def test_worked_example():
  """Section 3.2: a with children b and c, then c with child a, drawn without replacement."""
  p, q = toys.P3
  rest = lambda x: np.where(np.arange(3) == x, 0, q) / (1 - q[x])
  case = toys.case([0, 1, 2, 2, 0], p, parents=[-1, 0, 0, -1, 3],
                   q=np.stack([q, q, rest(1), rest(0), q]))
  decision = decide(case)
  np.testing.assert_allclose(decision.accept[:3], [0, 2 / 3, 7 / 11], atol=1e-12)
  after_b = decide(case._replace(valid=np.array([True, True, False, True, True])))
  np.testing.assert_allclose(after_b.accept[0], 1 / 11, atol=1e-12)
  np.testing.assert_allclose(np.exp(after_b.log_next[1]), [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize("update, chain, tree", [
    ("block", 0, 0),
    ("divided by 1 - q(x)", .0179825, .0389118),
    ("unchanged", .135, .1497642),
    ("mass", .05375, .0486206),
])
def test_mutants_of_the_parent_update_show_in_the_law(update, chain, tree):
  for parents, siblings, expected in (
      (topology.chain(2), rounds.INDEPENDENT, chain),
      (topology.branching((2, 1)), rounds.WITHOUT, tree)):
    tv, _ = rounds.literal_outcome(
        papers.traversal, rounds.pair("P3", 2), parents, siblings, update=update)
    np.testing.assert_allclose(tv, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "kind", ["chain", "one law", "any laws", "without replacement"])
def test_each_draft_as_the_paper_prints_it(kind):
  """Random trees with invalid nodes, branches in any order of index."""
  cases = toys.random_cases(4, 60, 6, 4, kind)
  expected = np.stack([papers.traversal(case) for case in cases])
  np.testing.assert_allclose(
      toys.laws_of(verify.traversal(), cases), expected, rtol=0, atol=1e-12)


def test_on_a_chain_it_is_block():
  cases = toys.random_cases(6, 60, 5, 4, "chain") + toys.random_cases(7, 20, 5, 4, "point masses")
  cases = [case._replace(parents=np.arange(-1, 4, dtype=np.int32), valid=np.arange(5) < i % 6)
           for i, case in enumerate(cases) if case.q is not None and case.valid.all()]
  assert len(cases) > 20
  np.testing.assert_allclose(
      toys.laws_of(verify.traversal(), cases), toys.laws_of(verify.block(), cases),
      rtol=0, atol=1e-12)


def test_deterministic_trees_keep_the_law_draft_by_draft():
  """Point masses: the round's text has the law of p for every single draft."""
  rng = np.random.default_rng(8)
  for tokens in ([0, 1, 2, 0, 1], [2, 2, 0, 2, 2]):  # the second with equal siblings
    case = toys.case(tokens, toys.laws(rng, 6, 3), parents=[-1, -1, 0, 0, 1])
    if tokens[0] == tokens[1]:
      case.p[2] = case.p[1]  # one text, one law
    law = toys.laws_of(verify.traversal(), [case])[0]
    text = np.zeros(3)
    np.add.at(text, [tokens[0], tokens[1], tokens[0], tokens[0], tokens[1]], law[1:].sum(-1))
    np.testing.assert_allclose(law[0] + text, case.p[0], rtol=0, atol=1e-12)


def test_nodes_that_were_not_drafted_are_not_looked_at():
  case = toys.random_cases(9, 1, 5, 3, "any laws")[0]._replace(
      parents=np.array([-1, 0, -1, 0, 2], np.int32), tokens=np.array([0, 1, 1, 2, 0], np.int32),
      valid=np.array([True, False, True, True, False]), q=toys.laws(np.random.default_rng(3), 5, 3))
  case.q[[1, 4]] = np.nan
  kept = np.array([0, 2, 3])
  small = toys.Case(case.tokens[kept], np.array([-1, -1, 0], np.int32), case.q[kept],
                    np.ones(3, bool), case.p[[0, 1, 3, 4]])
  whole, part = decide(case), decide(small)
  np.testing.assert_allclose(whole.accept[kept], part.accept, rtol=0, atol=1e-12)
  np.testing.assert_array_equal(whole.accept[[1, 4]], 0)
  np.testing.assert_allclose(whole.log_next[[0, 1, 3, 4]], part.log_next, rtol=0, atol=1e-12)
