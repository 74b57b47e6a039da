"""One round and several, against plain Python sums and by the theorem that rounds compose."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from specjax import verify
from specjax.exact import drafts, prefixes, rounds, systems
from specjax.types import Decision, DETERMINISTIC, WITHOUT_REPLACEMENT

_RULES = {
    "token": (verify.token(), drafts.chain(2)),
    "block": (verify.block(), drafts.chain(2)),
    "recursive": (verify.recursive(), drafts.tree((2, 1), WITHOUT_REPLACEMENT)),
    "traversal": (verify.traversal(), drafts.paths(2, 2)),
    "multipath_block": (verify.multipath_block(), drafts.paths(2, 2)),
}


def _tables(made, index=0):
  return jnp.asarray(made.log_p[index]), jnp.asarray(made.log_q[index])


def _one_round(rule, scheme, log_p, log_q):
  return rounds.one_round(rule, drafts.enumerate_drafts(scheme, log_q), log_p)


def _joint(log_p, length, vocab):
  """The target's law of `length` tokens, by a loop over texts."""
  p, law = np.exp(log_p), []
  for text in itertools.product(range(vocab), repeat=length):
    node, probability = 0, 1.
    for token in text:
      probability *= p[node, token]
      node = prefixes.child(node, token, vocab)
    law.append(probability)
  return np.array(law)


def test_joint_is_the_product_of_the_laws_along_each_text():
  made = systems.random(0, 1, 3, 2)
  with jax.enable_x64(True):
    reach = np.asarray(rounds.joint(jnp.asarray(made.log_p[0])))
  for length in range(4):
    np.testing.assert_allclose(
        reach[prefixes.level(3, length)], _joint(made.log_p[0], length, 3), rtol=1e-14)


def test_token_verification_by_hand():
  """One drafted token, P3: min(p, q) is accepted and continued, the residual is (0, 1/3, 2/3)."""
  with jax.enable_x64(True):
    log_p, log_q = _tables(systems.pair("P3", 1))
    round_ = jax.jit(functools.partial(_one_round, verify.token(), drafts.chain(1)))
    committed = round_(log_p, log_q)
    accepted, committed = float(rounds.accepted(committed)), np.asarray(committed)
  p = np.array([.3, .4, .3])
  np.testing.assert_allclose(committed[0], .3 * np.array([0, 1 / 3, 2 / 3]), atol=1e-15)
  np.testing.assert_allclose(committed[1:], np.array([.3, .3, .1])[:, None] * p, atol=1e-15)
  assert accepted == pytest.approx(.7, abs=1e-15)


@pytest.mark.parametrize("name", _RULES)
def test_a_round_is_a_law_and_completes_to_the_target(name):
  rule, scheme = _RULES[name]
  with jax.enable_x64(True):
    log_p, log_q = _tables(systems.random(1, 1, 3, scheme.depth))
    committed = jax.jit(functools.partial(_one_round, rule, scheme))(log_p, log_q)
    text = np.asarray(rounds.text_law(committed, log_p))
    tv = float(rounds.total_variation(committed, log_p))
  assert np.asarray(committed).sum() == pytest.approx(1, abs=1e-14)
  np.testing.assert_allclose(text, _joint(log_p, scheme.depth + 1, 3), atol=1e-15)
  assert tv < 1e-14


def _rounds_alone(rule, scheme, made, length):
  with jax.enable_x64(True):
    law = jax.jit(lambda p, q: rounds.law_of_rounds(rule, scheme, p, q, length))
    return np.asarray(law(*_tables(made)))


@pytest.mark.parametrize("name", _RULES)
def test_rounds_compose(name):
  """Four tokens written by rounds alone have the target's joint law, to rounding."""
  rule, scheme = _RULES[name]
  made = systems.random(2, 1, 2, 3 + scheme.depth)
  law = _rounds_alone(rule, scheme, made, 4)
  np.testing.assert_allclose(law, _joint(made.log_p[0], 4, 2), atol=1e-14)


def test_rounds_compose_over_three_tokens_of_vocabulary():
  made = systems.random(3, 1, 3, 4)
  law = _rounds_alone(verify.block(), drafts.chain(2), made, 3)
  np.testing.assert_allclose(law, _joint(made.log_p[0], 3, 3), atol=1e-14)


def _biased_bonus(draft, log_p):
  """The extra token after full acceptance comes from the row before: a stale row."""
  right = verify.token().decide(draft, log_p)
  return Decision(right.accept, right.log_next.at[-1].set(log_p[-2]))


def test_a_biased_round_shows_in_rounds():
  rule = verify.Rule(
      Partial(_biased_bonus), lossless=True, coupled=False, serves=verify.CHAINS, bottom_up=False)
  made = systems.random(2, 1, 2, 4)
  law = _rounds_alone(rule, drafts.chain(2), made, 3)
  assert law.sum() == pytest.approx(1, abs=1e-14)
  assert np.abs(law - _joint(made.log_p[0], 3, 2)).sum() > .01


def test_what_cannot_be_asked():
  made = systems.pair("AB", 2)
  with jax.enable_x64(True):
    tables = _tables(made)
    with pytest.raises(ValueError, match="laws after up to 4 tokens"):
      rounds.law_of_rounds(verify.token(), drafts.chain(2), *tables, 3)
    fixed = drafts.chain(1)._replace(siblings=DETERMINISTIC)
    with pytest.raises(ValueError, match="deterministic drafts have none"):
      rounds.law_of_rounds(verify.token(), fixed, *tables, 2)
