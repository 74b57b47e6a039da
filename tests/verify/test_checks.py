"""What a rule refuses, and how it says so: at once outside of jit, through checkify inside."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

from specjax import exact, verify
from specjax.types import Draft
from specjax.verify import rule as rule_lib

P, Q = np.log([.2, .3, .5]), np.log([.5, .25, .25])


def chain(**changes):
  """A good draft of two nodes; laws are rows of P and Q."""
  fields = dict(
      tokens=jnp.array([0, 2], jnp.int32), parents=jnp.array([-1, 0], jnp.int32),
      log_q=jnp.asarray(np.stack([Q, Q]), jnp.float32), valid=jnp.ones(2, bool))
  return Draft(**(fields | changes))


LOG_P = jnp.asarray(np.stack([P, P, P]), jnp.float32)
UNNORMALISED = jnp.zeros((2, 3), jnp.float32)
NAN = LOG_P.at[1, 2].set(jnp.nan)


def tree(*parents):
  nodes = len(parents)
  return Draft(
      jnp.zeros(nodes, jnp.int32), jnp.array(parents, jnp.int32), None, jnp.ones(nodes, bool)), (
          jnp.tile(LOG_P[:1], (nodes + 1, 1)))


# name: the draft, the laws, the rule, depth, what the message names
VALUES = {
    "log_p is logits": (chain(), LOG_P + 1, "token", None, ("log_p (3, 3)", "not a law")),
    "log_p has a NaN": (chain(), NAN, "token", None, ("log_p (3, 3)", "NaN")),
    "log_p has an empty row": (
        chain(), LOG_P.at[0].set(-jnp.inf), "token", None, ("log_p (3, 3)", "not a law")),
    "log_q is logits": (
        chain(log_q=UNNORMALISED), LOG_P, "token", None, ("draft.log_q (2, 3)", "not a law")),
    "log_q has a NaN": (
        chain(log_q=NAN[1:]), LOG_P, "recursive", None, ("draft.log_q (2, 3)", "NaN")),
    "a token beyond the vocabulary": (
        chain(tokens=jnp.array([0, 3], jnp.int32)), LOG_P, "token", None,
        ("draft.tokens (2,)", "vocabulary of 3")),
    "a valid PAD": (
        chain(tokens=jnp.array([0, -1], jnp.int32)), LOG_P, "match", None, ("draft.tokens (2,)",)),
    "a valid node below one that is not": (
        chain(valid=jnp.array([False, True])), LOG_P, "block", None,
        ("draft.valid (2,)", "not valid")),
    "a child before its parent": (
        *tree(1, -1), "match", None, ("draft.parents (2,)", "earlier node")),
    "a tree for a chain rule": (
        *tree(-1, -1), "token", None, ("draft.parents (2,)", "chains only")),
    "a tree for the block rule": (
        *tree(-1, 0, 0), "block", None, ("draft.parents (3,)", "rule.trees")),
    "a chain longer than the verdict": (
        chain(), LOG_P, "token", 1, ("draft.parents (2,)", "depth=1")),
    "a tree deeper than the verdict": (
        *tree(-1, -1, 1, 2), "match", 2, ("draft.parents (4,)", "depth=2")),
    "siblings of two laws for kseq": (
        chain(parents=jnp.array([-1, -1], jnp.int32),
              log_q=jnp.asarray(np.stack([P, Q]), jnp.float32)),
        LOG_P, "kseq", 2, ("draft.log_q (2, 3)", "one law")),
}


@pytest.mark.parametrize("what", VALUES)
def test_values_are_refused_outside_of_jit(what):
  draft, log_p, name, depth, words = VALUES[what]
  with pytest.raises(ValueError) as error:
    getattr(verify, name)().verify(jax.random.key(0), draft, log_p, depth)
  assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize("what", VALUES)
def test_values_are_refused_inside_jit_by_checkify(what):
  draft, log_p, name, depth, words = VALUES[what]
  rule = getattr(verify, name)()
  judge = lambda draft, log_p: rule.verify(jax.random.key(0), draft, log_p, depth)
  jax.eval_shape(judge, draft, log_p)  # without checkify: no complaint
  error, _ = jax.jit(checkify.checkify(judge))(draft, log_p)
  assert error.get() and all(word in error.get() for word in words), error.get()


def test_one_bad_row_of_a_batch_is_found():
  rule, keys = verify.token(), jax.random.split(jax.random.key(0), 3)
  judge = jax.jit(checkify.checkify(jax.vmap(rule.verify, (0, None, 0))))
  error, _ = judge(keys, chain(), jnp.stack([LOG_P, LOG_P, LOG_P]))
  assert error.get() is None
  error, _ = judge(keys, chain(), jnp.stack([LOG_P, NAN, LOG_P]))
  assert "log_p (3, 3)" in error.get()


@pytest.mark.parametrize("name", ("token", "recursive", "gumbel"))
def test_a_good_draft_passes_both_ways(name):
  rule = getattr(verify, name)()
  key = jax.random.split(jax.random.key(0), 3) if rule.coupled else jax.random.key(0)
  assert 1 <= rule.verify(key, chain(), LOG_P).count <= 3
  error, verdict = jax.jit(checkify.checkify(rule.verify))(key, chain(), LOG_P)
  assert error.get() is None and 1 <= verdict.count <= 3


def test_invalid_nodes_may_hold_anything():
  draft = chain(
      tokens=jnp.array([0, -1], jnp.int32), valid=jnp.array([True, False]),
      log_q=jnp.asarray(np.stack([Q, np.full(3, np.nan)]), jnp.float32))
  for name in ("token", "recursive"):  # the others: the draft laws of `toys` are NaN there
    rule = getattr(verify, name)()
    law, verdict = jax.jit(lambda *row: (
        exact.law(rule, *row), rule.verify(jax.random.key(0), *row)))(draft, LOG_P)
    assert np.isfinite(np.asarray(law)).all()
    assert 1 <= verdict.count <= 2


SHAPES = {
    "tokens": chain(tokens=jnp.zeros(3, jnp.int32)),
    "parents": chain(parents=jnp.zeros(1, jnp.int32)),
    "valid": chain(valid=jnp.ones((2, 1), bool)),
    "log_q": chain(log_q=jnp.zeros((2, 4), jnp.float32)),
}


@pytest.mark.parametrize("field", SHAPES)
def test_shapes_are_refused_while_tracing(field):
  message = re.escape(f"draft.{field} has shape {getattr(SHAPES[field], field).shape}")
  for run in (verify.token().verify, jax.jit(verify.token().verify)):
    with pytest.raises(ValueError, match=message):
      run(jax.random.key(0), SHAPES[field], LOG_P)
  with pytest.raises(ValueError, match=message):
    verify.token().decide(SHAPES[field], LOG_P)


def test_more_shapes_and_dtypes_are_refused_while_tracing():
  run = lambda draft, log_p: jax.eval_shape(verify.token().verify, jax.random.key(0), draft, log_p)
  with pytest.raises(ValueError, match=r"log_p must be float\[N \+ 1, V\] for one row.*vmap"):
    run(chain(), LOG_P[None])
  with pytest.raises(ValueError, match=r"draft.tokens has shape \(2,\), but log_p \(2, 3\)"):
    run(chain(), LOG_P[:2])  # the row of the bonus token is missing
  with pytest.raises(ValueError, match="draft.log_q is bfloat16 and log_p float32"):
    run(chain(log_q=chain().log_q.astype(jnp.bfloat16)), LOG_P)
  with pytest.raises(ValueError, match=r"at least the row of the root and one token.*\(3, 0\)"):
    run(chain(), LOG_P[:, :0])
  with pytest.raises(ValueError, match=r"log_p \(3, 3\) is float16, but laws are float32"):
    run(chain(log_q=None), LOG_P.astype(jnp.float16))
  for name, kind in ("tokens", "int32"), ("parents", "int32"), ("valid", "bool"):
    wrong = getattr(chain(), name).astype(jnp.float32)
    with pytest.raises(ValueError, match=rf"draft.{name} \(2,\) must be {kind}, got float32"):
      run(chain(**{name: wrong}), LOG_P)


@pytest.mark.parametrize("rule", [
    verify.lenient(np.array([.5, .8, .9])), verify.typical(delta=np.array([.1, .2, .3])),
    verify.where(np.array([True, False]), verify.token(), verify.match())],
    ids=["lenient", "typical", "where"])
def test_numbers_for_each_row_of_a_batch_are_refused_for_one_row(rule):
  """Their shapes fit the vocabulary, the rows or the nodes here, and would broadcast to them."""
  for run in rule.decide, functools.partial(rule.verify, jax.random.key(0)):
    with pytest.raises(ValueError, match="one number for each row of a batch.*map over the rule"):
      run(chain(), LOG_P)


def test_a_coupled_rule_wants_the_keys_of_positions():
  with pytest.raises(ValueError, match="key\\[depth \\+ 1\\]"):
    verify.gumbel().verify(jax.random.key(0), chain(), LOG_P)


def test_numpy_arrays_are_taken_as_they_are():
  draft, log_p = jax.tree.map(np.asarray, (chain(), LOG_P))
  for name in ("token", "recursive"):
    rule = getattr(verify, name)()
    np.testing.assert_allclose(
        exact.law(rule, draft, log_p), exact.law(rule, chain(), LOG_P), rtol=0, atol=1e-7)
    assert rule.verify(jax.random.key(0), draft, log_p).count >= 1


def test_checks_cost_a_compiled_rule_nothing():
  """The program is the same, operation for operation, as that of the formula alone."""
  rule, key = verify.token(), jax.random.key(0)
  def bare(key, draft, log_p):
    stop, extra = rule_lib.flip(key, draft, rule.judge(draft, log_p), rule.bottom_up)
    return rule_lib.verdict(draft, stop, extra, 2)

  def operations(run):
    text = jax.jit(run).lower(key, chain(), LOG_P).compile().as_text()
    return sorted(re.findall(r"= \S+ ([a-z-]+)\(", text))

  assert operations(rule.verify) == operations(bare)
