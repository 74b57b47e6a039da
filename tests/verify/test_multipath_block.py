"""Greedy multi-path block verification: lossless, the published numbers, one strict order."""

import functools

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import verify
from specjax.exact import law
from specjax.types import Draft
from specjax.trees import topology
from tests.verify import papers, rounds, toys

RULE = verify.multipath_block()


@functools.cache
def systems(vocab, depth, number):
  return rounds.random(vocab, number, vocab, depth) + list(rounds.degenerate(vocab, depth).values())


@pytest.mark.parametrize("vocab, number, paths, gamma", [
    (3, 50, 2, 2), (3, 4, 3, 2), (5, 50, 2, 1), (4, 30, 3, 1), (3, 10, 1, 3)])
def test_lossless_over_random_and_degenerate_systems(vocab, number, paths, gamma):
  tv, _ = rounds.outcomes(RULE, systems(vocab, gamma, number), topology.paths(paths, gamma))
  assert tv.max() < 1e-12


@pytest.mark.parametrize("name, paths, gamma, tau", [
    ("AB", 2, 1, 8 / 9), ("P3", 2, 1, .89),
    ("AB", 2, 2, 131 / 81), ("AB", 3, 2, 1289 / 729), ("P3", 2, 2, 1.6254)])
def test_published_numbers(name, paths, gamma, tau):
  got = rounds.outcomes(RULE, [rounds.pair(name, gamma)], topology.paths(paths, gamma))
  np.testing.assert_allclose(np.ravel(got), [0, tau], rtol=0, atol=1e-12)


@pytest.mark.parametrize("paths, tau", [(1, 1), (2, 3 / 4), (3, 5 / 8)])
def test_more_paths_accept_less_of_a_perfect_draft(paths, tau):
  flat = [np.full((2**d, 2), 1 / 2) for d in range(2)]
  got = rounds.outcomes(RULE, [rounds.System(flat, flat)], topology.paths(paths, 1))
  np.testing.assert_allclose(np.ravel(got), [0, tau], rtol=0, atol=1e-12)


def test_ties_broken_by_the_order_of_drafting_are_a_bias():
  flat = [np.full((2**d, 2), 1 / 2) for d in range(2)]
  system, shape = rounds.System(flat, flat), topology.paths(2, 1)
  assert rounds.literal_outcome(papers.multipath, system, shape, number=2)[0] < 1e-12
  drafts = rounds.drafts(system, shape)
  biased = rounds.literal(papers.multipath, drafts, number=2, ties="first")
  first = rounds.text_law(system, drafts, biased).reshape(2, 2).sum(1)
  np.testing.assert_allclose(first, [2 / 3, 1 / 3], rtol=0, atol=1e-12)


def test_each_draft_as_the_paper_prints_it():
  for system in systems(3, 2, 8):
    drafts = rounds.drafts(system, topology.paths(2, 2))
    off = rounds.laws(RULE, drafts) - rounds.literal(papers.multipath, drafts, number=2)
    assert np.abs(off[drafts.weight > 0]).max() < 1e-12


def test_one_path_is_block():
  cases = toys.random_cases(6, 40, 4, 4, "chain") + toys.random_cases(7, 20, 4, 4, "point masses")
  cases = [
      case for case in cases if (case.parents == np.arange(-1, 3)).all() and case.q is not None]
  assert len(cases) >= 40
  np.testing.assert_allclose(
      toys.laws_of(RULE, cases), toys.laws_of(verify.block(), cases), rtol=0, atol=1e-12)


@pytest.mark.parametrize("nodes", [[1, 3], [2, 3], [0, 1, 2, 3]], ids=["shorter", "fewer", "none"])
def test_lossless_with_nodes_that_were_not_drafted(nodes):
  some = systems(3, 2, 50)[::4]
  drafts = [rounds.cut(rounds.drafts(system, topology.paths(2, 2)), nodes) for system in some]
  for system, each, laws in zip(some, drafts, rounds.laws_of_all(RULE, drafts)):
    assert rounds.tv(system, each, laws) < 1e-12


def test_deterministic_paths_keep_the_law_draft_by_draft():
  rng = np.random.default_rng(2)
  case = toys.case([0, 1, 2, 2], toys.laws(rng, 5, 3), parents=[-1, 0, -1, 2])
  got = toys.laws_of(RULE, [case])[0]
  text = np.zeros(3)
  np.add.at(text, [0, 0, 2, 2], got[1:].sum(-1))
  np.testing.assert_allclose(got[0] + text, case.p[0], rtol=0, atol=1e-12)


@jax.jit
def first_token(log_p, log_q):
  """The law float[V] of the first token under two paths of one token, summed over all drafts."""
  vocab = log_p.shape[0]

  def one(tokens):
    draft = Draft(tokens, jnp.full(2, -1, jnp.int32), jnp.tile(log_q, (2, 1)), jnp.ones(2, bool))
    stops = law(RULE, draft, jnp.tile(log_p, (3, 1)))
    return stops[0].at[tokens].add(stops[1:].sum(-1)) * jnp.exp(log_q[tokens].sum())

  pairs = jnp.stack(jnp.divmod(jnp.arange(vocab**2, dtype=jnp.int32), vocab), -1)
  return jax.lax.map(one, pairs, batch_size=400).sum(0)


@pytest.mark.parametrize("laws", ["random", "equal", "two levels"])
def test_lossless_over_a_vocabulary_of_several_blocks(laws):
  """More tokens than `ranks` compares by p / q, with many ties within a cell."""
  vocab, rng = 80, np.random.default_rng(3)
  p, q = rng.dirichlet(np.ones(vocab), 2)
  if laws == "equal":
    p = q
  if laws == "two levels":  # p / q is 1/2 or 3/2 throughout
    level = rng.permutation(np.repeat([.5, 1.5], vocab // 2))
    q = np.full(vocab, 1 / vocab)
    p = q * level
  with jax.enable_x64(True):
    got = np.asarray(first_token(jnp.log(jnp.asarray(p)), jnp.log(jnp.asarray(q))))
  assert np.abs(got - p).sum() / 2 < 1e-12


def test_branches_below_the_root_are_refused():
  case = toys.case([0, 1, 2], np.full(3, 1 / 3), np.full(3, 1 / 3), parents=[-1, 0, 0])
  with jax.enable_x64(True), pytest.raises(ValueError, match="separate chains"):
    RULE.decide(case.draft, case.log_p)


def test_large_vocabulary_in_float32():
  """No NaN, laws that sum to 1, and the stops too, down paths whose probability underflows."""
  vocab, paths, gamma = 50000, 3, 12
  nodes = paths * gamma
  log_p = jax.nn.log_softmax(4 * jax.random.normal(jax.random.key(0), (nodes + 1, vocab)))
  log_q = jax.nn.log_softmax(4 * jax.random.normal(jax.random.key(1), (nodes, vocab)))
  rare = jnp.argmin(log_q, -1).astype(jnp.int32)  # far below 1e-38 together
  parents = jnp.asarray(topology.paths(paths, gamma), jnp.int32)
  draft = Draft(rare, parents, log_q, jnp.ones(nodes, bool))
  decision = jax.jit(RULE.decide)(draft, log_p)
  assert np.isfinite(decision.accept).all()
  np.testing.assert_allclose(np.exp(decision.log_next).sum(-1), 1, atol=1e-4)


def primitives(jaxpr):
  """The names of all operations of a program and of the programs in it."""
  names = set()
  for equation in jaxpr.eqns:
    inner = jax.extend.core.jaxprs_in_params(equation.params)
    names |= {equation.primitive.name}.union(*map(primitives, inner))
  return names


def test_no_sort():
  nodes, vocab = 4, 1000
  draft = Draft(jnp.zeros(nodes, jnp.int32), jnp.array([-1, 0, -1, 2]), jnp.zeros((nodes, vocab)),
                jnp.ones(nodes, bool))
  program = jax.make_jaxpr(RULE.verify)(jax.random.key(0), draft, jnp.zeros((nodes + 1, vocab)))
  used = primitives(program.jaxpr)
  assert "while" in used and not used & {"sort", "top_k", "approx_top_k"}


def test_the_order_of_the_nodes_does_not_matter():
  """Paths side by side, level by level, are judged like one path after the other."""
  cases = [toys.case(tokens, toys.laws(np.random.default_rng(i), 5, 3)[[0, 1, 2, 1, 4]],
                     toys.laws(np.random.default_rng(9), 4, 3)[[0, 1, 0, 1]], [-1, 0, -1, 2])
           for i, tokens in enumerate([[0, 1, 0, 2], [1, 1, 0, 2], [2, 0, 1, 1], [0, 2, 0, 2]])]
  rows, nodes = [0, 1, 3, 2, 4], [0, 2, 1, 3]
  moved = [case._replace(tokens=case.tokens[nodes], q=case.q[nodes], p=case.p[rows],
                         parents=np.array([-1, -1, 0, 1], np.int32)) for case in cases]
  np.testing.assert_allclose(
      toys.laws_of(RULE, moved), toys.laws_of(RULE, cases)[:, rows], rtol=0, atol=1e-14)


def test_one_path_gives_the_numbers_of_block():
  """The very numbers, in float32: no sums over the vocabulary stand between p and q."""
  case = toys.random_cases(6, 1, 4, 300, "chain", even=True)[0]._replace(valid=np.ones(4, bool))
  draft = case.draft._replace(tokens=jnp.abs(jnp.asarray(case.tokens)))
  draft = draft._replace(log_q=jnp.where(jnp.isnan(draft.log_q), -jnp.log(300.), draft.log_q))
  with jax.enable_x64(False):
    got, block = (jax.jit(rule.decide)(draft, case.log_p) for rule in (RULE, verify.block()))
  np.testing.assert_array_equal(got.accept, block.accept)
  np.testing.assert_array_equal(got.log_next, block.log_next)
