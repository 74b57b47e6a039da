"""Rules that try siblings from the root down, against the same rules as loops over one node."""

import jax
import numpy as np
import pytest

from specjax import verify
from specjax.exact import certify, drafts, systems
from specjax.types import INDEPENDENT, WITHOUT_REPLACEMENT
from tests.verify import toys

KINDS = ("chain", "one law", "any laws", "without replacement", "point masses")
NODES, VOCAB = 6, 4


def worst(rule, trial, kind, nodes=NODES):
  cases = toys.random_cases(0, 60, nodes, VOCAB, kind)
  expected = np.stack([toys.expected_law(case, trial) for case in cases])
  got = toys.laws_of(rule, cases)
  np.testing.assert_allclose(got.sum((1, 2)), 1, rtol=0, atol=1e-12)
  return np.abs(got - expected).max()


@pytest.mark.parametrize("kind", KINDS)
def test_recursive_is_the_loop_of_the_papers(kind):
  assert worst(verify.recursive(), toys.try_in_turn, kind) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_match_ends_at_the_first_child_that_the_target_drew(kind):
  assert worst(verify.match(), toys.sample_and_match, kind) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_specinfer_is_the_mean_over_all_orders(kind):
  assert worst(verify.specinfer(width=4), toys.try_in_random_order, kind, nodes=4) < 1e-12


@pytest.mark.parametrize("kind", ("chain", "one law"))
def test_kseq_is_the_loop_with_rho_star(kind):
  # rho is rounded up in its 50th bit, which moves every probability by about as much.
  assert worst(verify.kseq(), toys.try_against_scaled, kind) < 1e-12


def test_point_masses_make_recursive_sample_and_match():
  assert worst(verify.recursive(), toys.sample_and_match, "point masses") < 1e-12


def test_on_a_chain_all_of_them_are_token():
  cases = toys.random_cases(2, 60, NODES, VOCAB, "chain")  # as many as elsewhere: compiled once
  token = toys.laws_of(verify.token(), cases)
  for rule in (verify.recursive(), verify.specinfer(), verify.kseq()):
    np.testing.assert_allclose(toys.laws_of(rule, cases), token, rtol=0, atol=1e-12)


def test_the_order_of_the_nodes_does_not_matter_beyond_siblings():
  """Any numbering with parents first and siblings in their order gives the same stops."""
  shapes = np.array([-1, -1, 0, 1, 0, 1]), np.array([-1, 0, 0, -1, 3, 3])  # the same tree
  to_second = np.array([0, 1, 4, 2, 5, 3, 6])  # rows of the second numbering for rows of the first
  first = toys.random_cases(3, 1, NODES, VOCAB, "any laws")[0]._replace(
      parents=shapes[0].astype(np.int32), valid=np.ones(NODES, bool),
      tokens=np.array([0, 1, 2, 1, 3, 1], np.int32),
      q=np.random.default_rng(0).dirichlet(np.ones(VOCAB), NODES))
  nodes = to_second[1:] - 1
  second = first._replace(
      parents=shapes[1].astype(np.int32), tokens=first.tokens[np.argsort(nodes)],
      q=first.q[np.argsort(nodes)], p=first.p[np.argsort(to_second)])
  for rule in (verify.recursive(), verify.specinfer(), verify.match()):
    law_first, law_second = toys.laws_of(rule, [first])[0], toys.laws_of(rule, [second])[0]
    np.testing.assert_allclose(law_second[to_second], law_first, rtol=0, atol=1e-14)


def test_siblings_beyond_the_width_are_tried_after_the_others():
  rng = np.random.default_rng(4)
  p, q = rng.dirichlet(np.ones(4), 5), rng.dirichlet(np.ones(4), 4)
  case = toys.case([0, 1, 2, 1], p, q, [-1] * 4)

  def two_then_the_rest(p, children):
    if not children:
      return [], p
    ends, rest = np.zeros(4), np.zeros_like(p)
    for order in ((0, 1, 2, 3), (1, 0, 2, 3)):
      some_ends, some_rest = toys.try_in_turn(p, [children[i] for i in order])
      ends[list(order)] += np.array(some_ends) / 2
      rest += some_rest / 2
    return ends, rest

  expected = toys.expected_law(case, two_then_the_rest)
  np.testing.assert_allclose(
      toys.laws_of(verify.specinfer(width=2), [case])[0], expected, rtol=0, atol=1e-14)


def test_specinfer_keeps_the_law_with_a_drafter_for_each_sibling():
  p, drafters = np.array([.3, .4, .3]), np.array([[.6, .3, .1], [.1, .1, .8]])
  emitted = 0
  for first in range(3):
    for second in range(3):
      case = toys.case([first, second], p, drafters, [-1, -1])
      law = toys.laws_of(verify.specinfer(), [case])[0]
      weight = drafters[0, first] * drafters[1, second]
      emitted = emitted + weight * (
          law[0] + law[1].sum() * np.eye(3)[first] + law[2].sum() * np.eye(3)[second])
  np.testing.assert_allclose(emitted, p, rtol=0, atol=1e-14)


def test_a_width_that_cannot_be_summed_over_is_refused():
  for width in (0, 6):
    with pytest.raises(ValueError, match="width must be in 1 .. 5"):
      verify.specinfer(width)


def test_equal_rules_share_one_compilation():
  assert jax.tree.structure(verify.specinfer(2)) == jax.tree.structure(verify.specinfer(2))
  assert jax.tree.structure(verify.specinfer(2)) != jax.tree.structure(verify.specinfer(3))


U24 = (.5, .5, 0, 0), (.25, .25, .25, .25)
SHARP = (1., 0), (.5, .5)
# One position, k drafts: the probability that one of them is accepted. SpecTr's and Sequoia's own
# examples and exact sums; rho* of AB is a root, hence the digits.
ACCEPTED = (
    ("recursive", toys.P3, 2, INDEPENDENT, .82),
    ("recursive", toys.P3, 2, WITHOUT_REPLACEMENT, 7 / 8),
    ("recursive", SHARP, 2, WITHOUT_REPLACEMENT, 1),
    ("specinfer", toys.AB, 3, INDEPENDENT, 23 / 27),
    ("kseq", toys.P3, 2, INDEPENDENT, .84),
    ("kseq", toys.AB, 3, INDEPENDENT, .896576),
    ("kseq", U24, 2, INDEPENDENT, 3 / 4),
    ("kseq", ((1., 0), (0, 1.)), 2, INDEPENDENT, 0),
    ("match", toys.P3, 2, INDEPENDENT, .513),
)


@pytest.mark.parametrize("name, pair, k, siblings, value", ACCEPTED)
def test_published_acceptance_at_one_position(name, pair, k, siblings, value):
  rule = getattr(verify, name)()
  system = systems.context_free("pair", *pair, 1)
  made = certify(rule, [drafts.tree((k,), siblings)], system)
  assert made.max_tv < 1e-12
  assert made.cases[0].at("pair") == pytest.approx(value, rel=0, abs=1e-6)
