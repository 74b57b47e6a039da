"""Faults kept as mutants: each must be caught, by law or by E[tau].

The published faults whose whole check is a number stand in experiments/papers/faults.py, and
tests/experiments/test_reproduce.py runs them; here is what that file lacks. Most state the smallest
input that shows them and the wrong result, worked out by hand as a fraction. A mutant is either a
wrong rule, or a right one that is handed a draft that was not drawn the way it says.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from experiments.papers import faults
from specjax import verify
from specjax.exact import certify, drafts, rounds, systems
from specjax.types import Decision, Draft, WITHOUT_REPLACEMENT
from specjax.verify import rule as rule_lib

# Helpers: a mutant rule, and the text of drafts that are tampered with.


def mutant(formula, serves=verify.CHAINS, bottom_up=False):
  return verify.Rule(
      Partial(formula), lossless=True, coupled=False, serves=serves, bottom_up=bottom_up)


@jax.jit
def _judged(rule, every, log_p, told):
  committed = rounds.one_round(rule, every, told)
  return rounds.text_law(committed, log_p), rounds.accepted(committed)


def text(rule, every, p, depth=1, told=None):
  """The law of depth + 1 tokens reshaped to one axis a token, and E[tau]; laws are context-free."""
  with jax.enable_x64(True):
    made = systems.context_free("laws", p, p, depth)
    other = made if told is None else systems.context_free("told", told, told, depth)
    text_law, tau = _judged(
        rule, every, jnp.asarray(made.log_p[0]), jnp.asarray(other.log_p[0]))
    return np.asarray(text_law).reshape((len(p),) * (depth + 1)), float(tau)


def first_token(*args, **kwargs):
  law_, _ = text(*args, **kwargs)
  return law_.sum(tuple(range(1, law_.ndim)))


def drawn(scheme, q):
  with jax.enable_x64(True):
    return drafts.enumerate_drafts(
        scheme, jnp.asarray(systems.context_free("q", q, q, scheme.depth).log_q[0]))


def recorded(every, log_q):
  return every._replace(draft=every.draft._replace(log_q=log_q))


def one_pair(rule, scheme, p, q):
  return certify(rule, [scheme], systems.context_free("laws", p, q, scheme.depth))


AB, P3 = systems.PAIRS["AB"], systems.PAIRS["P3"]
TWO_DISTINCT = drafts.tree((2,), WITHOUT_REPLACEMENT)


# Drafts that were not drawn from the law that they record.


def test_target_scored_at_another_temperature():
  p = np.exp([4, 0]) / np.exp([4, 0]).sum()
  told = np.exp([2, 0]) / np.exp([2, 0]).sum()  # temperature 1 where the text asks for one half
  every = drawn(drafts.chain(1), (.5, .5))
  np.testing.assert_allclose(first_token(verify.token(), every, p, told=told), told, atol=1e-14)
  assert abs(told - p).max() > .1


@pytest.mark.parametrize("rule", [verify.token(), verify.block(), verify.recursive()])
def test_stopping_after_an_unlikely_token_is_fine(rule):
  """To leave out the token itself is a fault."""
  p, q = (.5, .5), (.8, .2)
  every = drawn(drafts.chain(2), q)
  stopped = every.draft.valid.at[:, 1].set(every.draft.tokens[:, 0] != 1)
  kept = every._replace(draft=every.draft._replace(valid=stopped))
  law_, _ = text(rule, kept, p, depth=2)
  np.testing.assert_allclose(law_, np.full((2, 2, 2), 1 / 8), atol=1e-14)


def _zeroed_without_renormalising(q):
  """Drafts without replacement whose second law is q without the first token, as it was."""
  every = drawn(TWO_DISTINCT, q)
  with jax.enable_x64(True):
    full = jnp.broadcast_to(jnp.log(jnp.asarray(q)), every.draft.log_q.shape)
    first = jax.nn.one_hot(every.draft.tokens[:, :1], len(q)) > 0
    second = jnp.arange(2)[None, :, None] == 1
    return recorded(every, jnp.where(first & second, -jnp.inf, full))


def test_drafts_without_replacement_that_are_not_renormalised():
  """Two tokens hide this fault, three show it."""
  ab = first_token(verify.recursive(), _zeroed_without_renormalising(AB[1]), AB[0])
  np.testing.assert_allclose(ab, AB[0], atol=1e-14)
  p3 = first_token(verify.recursive(), _zeroed_without_renormalising(P3[1]), P3[0])
  np.testing.assert_allclose(p3, (.3, .525, .175), atol=1e-14)


def test_token_already_removed_from_q_when_the_residual_is_taken():
  """The residual must subtract q as it was when the rejected child was drawn."""
  def formula(draft, log_p):
    left, accept = jnp.exp(log_p[0]), []
    for token, q in zip(draft.tokens, jnp.exp(draft.log_q)):
      accept.append(jnp.minimum(jnp.where(q[token] > 0, left[token] / q[token], 1), 1))
      removed = q.at[token].set(0)
      left = jnp.maximum(left - removed / removed.sum(), 0)
      left = left / left.sum()
    return Decision(jnp.stack(accept), jnp.concatenate([jnp.log(left)[None], log_p[1:]]))

  found = one_pair(mutant(formula, serves=verify.ANY), TWO_DISTINCT, *P3)
  assert found.max_tv == pytest.approx(99 / 392, abs=1e-12)


# Wrong rules.


def token_with(residual):
  """Token verification with the law of the extra token proportional to residual(p, q, X)."""
  def formula(draft, log_p):
    right = verify.token().decide(draft, log_p)
    mass = jax.vmap(residual)(jnp.exp(log_p[:-1]), jnp.exp(draft.log_q), draft.tokens)
    rest = jnp.log(mass / mass.sum(-1, keepdims=True))
    return Decision(right.accept, right.log_next.at[:-1].set(
        jnp.where(draft.valid[:, None], rest, log_p[:-1])))

  return mutant(formula)


RESIDUAL_WITHOUT_THE_TOKEN = token_with(lambda p, q, token: p.at[token].set(0))
RESIDUAL_UNGUARDED = token_with(lambda p, q, token: jnp.maximum(p - q, 0))
RESIDUAL_WITH_EPSILON = token_with(lambda p, q, token: jnp.maximum(p - q, 0) + 1e-4)
DRAFT_LAW_CLAMPED = token_with(
    lambda p, q, token: jnp.maximum(p - jnp.maximum(q, 1e-8), 0) + 1e-300)


def accept_everything(draft, log_p):
  right = verify.token().decide(draft, log_p)
  return Decision(jnp.ones_like(right.accept), right.log_next)


def first_never_verified(draft, log_p):
  """Row i compared with token i + 1: the first token passes, the others meet the wrong row."""
  shifted = jnp.concatenate([log_p[1:], log_p[-1:]])
  ratio = (shifted[:-1] - draft.log_q)[jnp.arange(draft.tokens.shape[0]), draft.tokens]
  accept = jnp.exp(jnp.minimum(ratio, 0)).at[0].set(1)
  return Decision(jnp.where(draft.valid, accept, 0), verify.token().decide(draft, log_p).log_next)


def nothing_at_temperature_zero(draft, log_p):
  """Probabilities are left unset for a one-hot target, so that nothing is accepted."""
  right = verify.token().decide(draft, log_p)
  sure = log_p.max(-1) == 0
  return Decision(
      jnp.where(sure[:-1], 0, right.accept), jnp.where(sure[:, None], log_p, right.log_next))


def block_with(epsilon):
  """Block verification from its definition, with an epsilon in the denominator of h."""
  def formula(draft, log_p):
    p, q = jnp.exp(log_p), jnp.exp(draft.log_q)
    place = jnp.arange(draft.tokens.shape[0])
    w = _clipped_products(p[place, draft.tokens] / q[place, draft.tokens])
    rest = jnp.maximum(w[:-1, None] * p[:-1] - q, 0)
    mass = rest.sum(-1)
    total = mass + 1 - w[:-1]
    back = jnp.where(total > 0, mass / jnp.where(total > 0, total + epsilon, 1), 1)
    residual = jnp.where(mass[:, None] > 0, rest / jnp.where(mass > 0, mass, 1)[:, None], p[:-1])
    return Decision(
        jnp.minimum(jnp.append(back[1:], w[-1]), 1), jnp.log(jnp.concatenate([residual, p[-1:]])))

  return mutant(formula, bottom_up=True)


def _clipped_products(ratios):
  """w_0 .. w_gamma."""
  def step(w, ratio):
    return (jnp.minimum(w * ratio, 1),) * 2

  one = jnp.ones((), ratios.dtype)
  return jnp.append(one, jax.lax.scan(step, one, ratios)[1])


@pytest.mark.parametrize("rule", [mutant(accept_everything), mutant(first_never_verified)],
                         ids=["everything accepted", "first token never verified"])
def test_wrong_rules_have_the_wrong_law(rule):
  found = one_pair(rule, drafts.chain(1), *P3)
  assert found.max_tv == pytest.approx(.3, abs=1e-12)
  assert not found.lossless


def test_unclipped_block_looks_better_than_the_optimum():
  found = one_pair(faults.block_without_clip(), drafts.chain(2), *AB)
  assert found.block_efficiency == pytest.approx(1 + 12 / 9) and found.distance < -.1


@pytest.mark.parametrize("rule", [
    faults.without_residual(), RESIDUAL_WITHOUT_THE_TOKEN, RESIDUAL_WITH_EPSILON, DRAFT_LAW_CLAMPED,
    mutant(accept_everything), mutant(first_never_verified)], ids=[
        "residual forgotten", "residual p without the token", "epsilon in the residual",
        "draft law clamped", "everything accepted", "first token never verified"])
def test_random_systems_catch_wrong_laws_too(rule):
  found = certify(rule, [drafts.chain(3)], number=12)
  assert not found.max_tv <= 1e-9  # a right rule stays below 1e-12; NaN is caught as well


def test_a_residual_of_zero_mass_gives_nan_and_nan_is_not_lossless():
  found = one_pair(RESIDUAL_UNGUARDED, drafts.chain(2), P3[0], P3[0])
  assert np.isnan(found.max_tv) and not found.lossless


def test_a_nan_row_of_the_drafter_is_refused():
  row = jnp.full((1, 3), jnp.nan)
  draft = Draft(jnp.zeros(1, jnp.int32), jnp.full(1, -1), row, jnp.ones(1, bool))
  with pytest.raises(ValueError, match="log_q .* not a law"):
    verify.token().decide(draft, jnp.log(jnp.full((2, 3), 1 / 3)))


def test_block_flag_ignored_shows_in_efficiency_alone():
  """Token verification under the name of block verification keeps the law."""
  found = one_pair(verify.token(), drafts.chain(2), *P3)
  assert found.lossless and found.block_efficiency == pytest.approx(1 + 119 / 100, abs=1e-13)
  assert found.distance == pytest.approx(5 / 4 - 119 / 100, abs=1e-13)
  assert one_pair(verify.block(), drafts.chain(2), *P3).distance == pytest.approx(0, abs=1e-13)


def test_nothing_accepted_at_temperature_zero_shows_in_efficiency_alone():
  found = one_pair(mutant(nothing_at_temperature_zero), drafts.chain(3), (0., 1., 0.), (0., 1., 0.))
  assert found.lossless and found.distance == pytest.approx(3)


def test_an_epsilon_in_block_verification_is_caught():
  right, wrong = (certify(block_with(epsilon), [drafts.chain(3)], number=12)
                  for epsilon in (0., 1e-4))
  assert right.lossless and abs(right.distance) < 1e-13
  assert wrong.max_tv > 1e-9


def test_an_inclusive_comparison_accepts_what_the_target_excludes(monkeypatch):
  """The coin u = 0 comes once in 2 ** 24; no law shows it."""
  monkeypatch.setattr(jax.random, "uniform", lambda key, shape, dtype: jnp.zeros(shape, dtype))
  draft = Draft(jnp.zeros(1, jnp.int32), jnp.full(1, -1), jnp.zeros((1, 1)), jnp.ones(1, bool))
  judged = rule_lib.Judgement(jnp.zeros(1), lambda row: jnp.zeros(1))
  stop, _ = rule_lib.flip(jax.random.key(0), draft, judged, False)
  assert stop == -1
  assert (jnp.zeros(1) <= judged.accept).all()  # what an inclusive comparison would have said
