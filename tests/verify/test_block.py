"""Block verification: lossless and best over small systems, the published numbers, its mutants."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import verify
from specjax.trees import topology
from specjax.types import Draft, PAD
from tests.verify import papers, rounds, toys

# E[tau] by gamma; the first row is the motivating example of the paper and its sequel.
PUBLISHED = {
    "AB": {1: 2 / 3, 2: 11 / 9, 3: 5 / 3, 4: 166 / 81, 5: 64 / 27, 6: 1933 / 729},
    "P3": {1: 7 / 10, 2: 5 / 4, 3: 213 / 125},
    "S3": {1: 1 / 2, 2: 17 / 20, 3: 109 / 100},
}


@functools.cache
def systems(vocab, depth, number):
  return rounds.random(vocab, number, vocab, depth) + list(rounds.degenerate(vocab, depth).values())


@pytest.mark.parametrize("vocab, gamma, number", [(3, 3, 60), (4, 2, 60), (5, 2, 30), (3, 1, 60)])
def test_lossless_over_random_and_degenerate_systems(vocab, gamma, number):
  tv, _ = rounds.outcomes(verify.block(), systems(vocab, gamma, number), topology.chain(gamma))
  assert tv.max() < 1e-12


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers(name):
  """Each gamma as a longest draft of which the rest was not drafted."""
  longest = max(PUBLISHED[name])
  system = rounds.pair(name, longest)
  everything = rounds.drafts(system, topology.chain(longest))
  for gamma, tau in PUBLISHED[name].items():
    drafts = rounds.cut(everything, list(range(gamma, longest)))
    laws = rounds.laws(verify.block(), drafts)
    assert rounds.tv(system, drafts, laws) < 1e-12
    assert abs(rounds.accepted(drafts, laws) - tau) < 1e-12


def test_accepts_what_the_weights_say_and_never_less_than_token():
  """E[tau] is the sum of E_q[w_l], the optimum of a single path."""
  some, gamma = systems(3, 3, 60), 3
  _, tau = rounds.outcomes(verify.block(), some, topology.chain(gamma))
  _, token = rounds.outcomes(verify.token(), some, topology.chain(gamma))
  for system, got in zip(some, tau):
    w, drafted, expected = np.ones(1), np.ones(1), 0.
    for depth in range(gamma):
      joint = (w * drafted)[:, None] * system.p[depth]
      drafted = (drafted[:, None] * system.q[depth]).reshape(-1)
      mass = np.minimum(joint.reshape(-1), drafted)
      w = np.divide(mass, drafted, out=np.zeros_like(mass), where=drafted > 0)
      expected += mass.sum()
    assert abs(got - expected) < 1e-12
  assert (tau > token - 1e-12).all() and (tau > token + 1e-3).sum() > 30


@pytest.mark.parametrize("last", ["capped", "joint"])
def test_hierarchical_decoding_is_block_verification_but_for_its_released_code(last):
  difference = []
  for system in rounds.random(11, 12, 3, 3):
    drafts = rounds.drafts(system, topology.chain(3))
    same = rounds.laws(verify.block(), drafts) - rounds.literal(
        papers.hierarchical, drafts, last=last)
    difference.append(np.abs(same[drafts.weight > 0]).max())
  assert (max(difference) < 1e-12) == (last == "capped")


@pytest.mark.parametrize("mistake, name, gamma, tv, tau", [
    ({}, "P3", 2, 0, 5 / 4),
    (dict(residual="unweighted"), "P3", 2, 1 / 100, 5 / 4),  # invisible on AB
    (dict(residual="unweighted"), "P3", 3, 17 / 1000, 213 / 125),
    (dict(residual="unweighted"), "AB", 2, 0, 11 / 9),
    (dict(accept="token"), "P3", 2, .21, 1.61),
    (dict(order="down"), "AB", 2, 1 / 3, 5 / 9),
    (dict(order="down"), "P3", 2, .2454545, .7590909),
    (dict(clip="factors"), "AB", 2, 1 / 9, 1),
    (dict(clip="none"), "AB", 2, 1 / 9, 12 / 9),
])
def test_mutants_show_in_the_law(mistake, name, gamma, tv, tau):
  got = rounds.literal_outcome(
      papers.block, rounds.pair(name, gamma), topology.chain(gamma), **mistake)
  np.testing.assert_allclose(got, [tv, tau], rtol=0, atol=1e-7)


def test_released_hierarchical_code_is_lossy():
  got = rounds.literal_outcome(
      papers.hierarchical, rounds.pair("AB", 2), topology.chain(2), last="joint")
  np.testing.assert_allclose(got, [1 / 9, 4 / 3], rtol=0, atol=1e-12)


def test_a_flag_that_falls_back_to_token_shows_in_the_count():
  _, tau = rounds.outcomes(verify.token(), [rounds.pair("P3", 2)], topology.chain(2))
  np.testing.assert_allclose(tau, 1.19, rtol=0, atol=1e-12)


def test_each_draft_as_the_paper_prints_it():
  for system in systems(3, 2, 20):
    drafts = rounds.drafts(system, topology.chain(2))
    off = rounds.laws(verify.block(), drafts) - rounds.literal(papers.block, drafts)
    assert np.abs(off[drafts.weight > 0]).max() < 1e-12


def decide(case):
  with jax.enable_x64(True):
    return jax.tree.map(np.asarray, jax.jit(verify.block().decide)(case.draft, case.log_p))


def test_nodes_that_were_not_drafted_are_not_looked_at():
  """The last valid node is the end of the block, whatever stands after it."""
  full = toys.random_cases(5, 1, 4, 3, "chain")[0]
  q, tokens = toys.laws(np.random.default_rng(0), 4, 3), full.tokens
  q[2:], tokens[2:] = np.nan, PAD
  long = full._replace(q=q, tokens=tokens.clip(PAD), valid=np.array([True, True, False, False]))
  long.tokens[:2] = [1, 0]
  short = long._replace(
      tokens=long.tokens[:2], parents=long.parents[:2], q=q[:2], valid=np.ones(2, bool),
      p=long.p[:3])
  ours, theirs = decide(long), decide(short)
  np.testing.assert_array_equal(ours.accept, np.append(theirs.accept, [0, 0]))
  np.testing.assert_array_equal(ours.log_next[:3], theirs.log_next)
  assert (decide(long._replace(valid=np.zeros(4, bool))).accept == 0).all()


def test_point_masses_are_those_laws():
  case = toys.case([0, 2, 1], toys.laws(np.random.default_rng(1), 4, 3))
  explicit = case._replace(q=np.eye(3)[case.tokens])
  for a, b in zip(decide(case), decide(explicit)):
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
  np.testing.assert_allclose(decide(case).accept[-1], np.prod(case.p[np.arange(3), case.tokens]))


def test_an_impossible_token_stays_impossible():
  p = np.array([[.5, .5, 0], [.2, .2, .6], [.9, .05, .05]])
  case = toys.case([2, 2], p, q=np.array([.1, .1, .8]))
  assert (decide(case).accept == 0).all()
  np.testing.assert_allclose(np.exp(decide(case).log_next[0]), [.5, .5, 0])


def test_large_vocabulary_in_float32():
  """p = q is accepted surely, and p = q up to rounding almost surely; no NaN either way."""
  vocab, gamma = 151936, 4
  log_p = jax.nn.log_softmax(3 * jax.random.normal(jax.random.key(0), (gamma + 1, vocab)))
  tokens = jax.random.categorical(jax.random.key(1), log_p[:-1]).astype(jnp.int32)
  draft = Draft(tokens, jnp.arange(-1, gamma - 1), log_p[:-1], jnp.ones(gamma, bool))
  same = verify.block().decide(draft, log_p)
  np.testing.assert_array_equal(same.accept, np.ones(gamma))
  np.testing.assert_allclose(np.exp(same.log_next).sum(-1), 1, atol=1e-4)
  shaken = jax.nn.log_softmax(log_p + 1e-6 * jax.random.normal(jax.random.key(2), log_p.shape))
  near = verify.block().decide(draft, shaken)
  assert np.isfinite(near.accept).all() and near.accept[-1] > 1 - 1e-4
  np.testing.assert_allclose(np.exp(near.log_next).sum(-1), 1, atol=1e-4)
