"""Bounds against exact fractions and against linear programs."""

import functools
import itertools
from fractions import Fraction as F

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from specjax.exact import bounds, drafts, systems
from specjax.types import WITHOUT_REPLACEMENT

_AB, _P3, _R3 = (systems.PAIRS[name] for name in ("AB", "P3", "R3"))
_HALVES = (.5, .5, 0, 0), (.25, .25, .25, .25)


def _exact(function, laws, *rest):
  with jax.enable_x64(True):
    compiled = jax.jit(lambda *laws: function(*laws, *rest))
    return float(compiled(*(jnp.asarray(law) for law in laws)))


def _transport_by_lp(p, weights, words):
  """max sum of pi(word, token in word), pi within Pr(word) and p(token): the primal program."""
  pairs = [(a, v) for a, word in enumerate(words) for v in sorted(set(word))]
  limits = np.zeros((len(words) + len(p), len(pairs)))
  for column, (word, token) in enumerate(pairs):
    limits[word, column] = limits[len(words) + token, column] = 1
  solved = optimize.linprog(
      -np.ones(len(pairs)), A_ub=limits, b_ub=np.concatenate([weights, p]), bounds=(0, None))
  return -solved.fun


@pytest.mark.parametrize("laws,k,value", [
    (_P3, 1, F(7, 10)), (_P3, 2, F(89, 100)), (_R3, 2, F(86, 100)), (_AB, 2, F(8, 9)), (_AB, 3, 1),
    (((.75, .25), (.25, .75)), 2, F(11, 16)), (_HALVES, 2, F(3, 4)), (_HALVES, 4, F(15, 16)),
    (((1., 0.), (.5, .5)), 2, F(3, 4)),
    # Khisti's condition p(S) >= q(S)^2 holds in the first pair and not in the second.
    (((.25, .75), (.5, .5)), 2, 1), (((.2, .8), (.5, .5)), 2, F(19, 20)),
])
def test_transport_of_independent_drafts(laws, k, value):
  assert _exact(bounds.transport, laws, k) == pytest.approx(float(value), abs=1e-14)


@pytest.mark.parametrize("laws,value", [
    (_P3, F(139, 140)), (_R3, F(69, 70)), (_AB, 1), (_HALVES, F(5, 6)), (((1., 0.), (.5, .5)), 1)])
def test_transport_without_replacement(laws, value):
  got = _exact(bounds.transport_without_replacement, laws)
  assert got == pytest.approx(float(value), abs=1e-14)


@pytest.mark.parametrize("laws,k,value", [(_P3, 2, .95), (_R3, 2, .9), (_P3, 1, .7), (_P3, 4, 1)])
def test_greedy_draft(laws, k, value):
  assert _exact(bounds.greedy_draft, laws, k) == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_transport_is_the_linear_program(seed, k):
  rng = np.random.default_rng(seed)
  p, q = rng.dirichlet(np.ones(4), 2)
  words = list(itertools.product(range(4), repeat=k))
  by_lp = _transport_by_lp(p, q[np.array(words)].prod(1), words)
  assert _exact(bounds.transport, (p, q), k) == pytest.approx(by_lp, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_transport_without_replacement_is_the_linear_program(seed):
  rng = np.random.default_rng(seed)
  p, q = rng.dirichlet(np.ones(5), 2)
  words = list(itertools.permutations(range(5), 2))
  weights = np.array([q[a] * q[b] / (1 - q[a]) for a, b in words])
  by_lp = _transport_by_lp(p, weights, words)
  assert _exact(bounds.transport_without_replacement, (p, q)) == pytest.approx(by_lp, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_greedy_draft_is_the_linear_program(seed):
  rng = np.random.default_rng(seed)
  p, q = rng.dirichlet(np.ones(5), 2)
  top, *rest = np.argsort(-q)
  words = [(top, token) for token in rest]
  by_lp = _transport_by_lp(p, q[rest] / q[rest].sum(), words)
  assert _exact(bounds.greedy_draft, (p, q), 2) == pytest.approx(by_lp, abs=1e-9)


@pytest.mark.parametrize("name,gamma,value", [
    ("AB", 1, F(2, 3)), ("AB", 2, F(11, 9)), ("AB", 3, F(5, 3)), ("AB", 4, F(166, 81)),
    ("AB", 5, F(64, 27)), ("AB", 6, F(1933, 729)), ("P3", 1, F(7, 10)), ("P3", 2, F(5, 4)),
    ("P3", 3, F(213, 125)), ("S3", 1, F(1, 2)), ("S3", 2, F(17, 20)), ("S3", 3, F(109, 100))])
def test_single_path_optimum(name, gamma, value):
  made = systems.pair(name, gamma)
  got = _exact(bounds.single_path, (made.log_p[0], made.log_q[0]))
  assert got == pytest.approx(float(value), abs=1e-13)


@pytest.mark.parametrize("name,gamma,value", [
    ("AB", 1, F(2, 3)), ("AB", 2, F(4, 3)), ("AB", 3, F(50, 27)), ("AB", 4, F(64, 27))])
def test_joint_ideal_of_a_chain(name, gamma, value):
  assert _joint_ideal(systems.pair(name, gamma), drafts.chain(gamma)) == pytest.approx(
      float(value), abs=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_joint_ideal_of_a_chain_is_the_overlap_of_joint_laws(seed):
  made = systems.random(seed, 1, 3, 3)  # 27 texts: the cuts are tried in order of p / P(drafted)
  p, q = (np.exp(table[0]) for table in (made.log_p, made.log_q))
  total, joint_p, joint_q, start = 0, np.ones(1), np.ones(1), 0
  for length in range(3):
    rows = slice(start, start + 3**length)
    joint_p = (joint_p[:, None] * p[rows]).reshape(-1)
    joint_q = (joint_q[:, None] * q[rows]).reshape(-1)
    total, start = total + np.minimum(joint_p, joint_q).sum(), start + 3**length
  assert _joint_ideal(made, drafts.chain(3)) == pytest.approx(total, abs=1e-13)


@pytest.mark.parametrize("scheme", [
    drafts.paths(2, 2),
    drafts.paths(2, 2, drafts.MERGED),
    drafts.tree((2, 1), WITHOUT_REPLACEMENT),
    drafts.tree((2, 1), WITHOUT_REPLACEMENT)._replace(name="pruned", invalid=(1,)),
    drafts.tree((2, 2), WITHOUT_REPLACEMENT)], ids=lambda scheme: scheme.name)
def test_joint_ideal_of_a_tree_is_a_linear_program_for_each_length(scheme):
  made = systems.random(7, 1, 3, 2)
  with jax.enable_x64(True):
    every = drafts.enumerate_drafts(scheme, jnp.asarray(made.log_q[0]))
  p, total = np.exp(made.log_p[0]), 0
  reach = {0: 1.}
  for text in range(4):
    reach |= {3 * text + 1 + token: reach[text] * p[text, token] for token in range(3)}
  for first, last in ((1, 4), (4, 13)):
    words = [[text - first for text, valid in zip(texts[1:], kept)
              if valid and first <= text < last]
             for texts, kept in zip(np.asarray(every.prefixes), np.asarray(every.draft.valid))]
    law = np.array([reach[text] for text in range(first, last)])
    total += _transport_by_lp(law, np.asarray(every.weight), words)
  assert _joint_ideal(made, scheme) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_one_position_of_a_tree_is_the_transport_bound(k):
  made = systems.random(3, 1, 4, 1)
  laws = np.exp(made.log_p[0, 0]), np.exp(made.log_q[0, 0])
  assert _joint_ideal(made, drafts.paths(k, 1)) == pytest.approx(
      _exact(bounds.transport, laws, k), abs=1e-14)


def _joint_ideal(made, scheme):
  with jax.enable_x64(True):
    return float(_ideal(scheme, jnp.asarray(made.log_p[0]), jnp.asarray(made.log_q[0])))


@functools.partial(jax.jit, static_argnums=0)
def _ideal(scheme, log_p, log_q):
  return bounds.joint_ideal(drafts.enumerate_drafts(scheme, log_q), log_p, scheme.depth)
