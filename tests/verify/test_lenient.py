"""Lenience against its closed forms, around every kind of rule."""

import jax
import numpy as np
import pytest

from specjax import verify
from tests.verify import toys


def one_position(rule, p, q):
  """The law of the token and the probability that the drafted one is accepted."""
  law, accepted = 0, 0
  for token in range(len(p)):
    one = toys.laws_of(rule, [toys.case([token], p, q)])[0]
    law = law + q[token] * (one[0] + one[1].sum() * np.eye(len(p))[token])
    accepted = accepted + q[token] * one[1].sum()
  return law, accepted


def test_the_published_pair():
  law, alpha = one_position(verify.lenient(.8), *toys.P3)
  assert alpha == pytest.approx(.775, rel=0, abs=1e-12)  # sum min(p / .8, q)
  # The residual is [p - .8 q]+ = (0, .16, .22) normalised.
  np.testing.assert_allclose(law, (.375, .39473684, .23026316), rtol=0, atol=1e-8)
  assert np.abs(law - toys.P3[0]).sum() / 2 == pytest.approx(.075, rel=0, abs=1e-12)


@pytest.mark.parametrize("factor", (.9, .5, .1, 1e-3))
def test_acceptance_is_the_closed_form_and_no_token_exceeds_p_over_the_factor(factor):
  rng = np.random.default_rng(0)
  for p, q in zip(toys.laws(rng, 9, 5), toys.laws(rng, 9, 5)):
    law, alpha = one_position(verify.lenient(factor), p, q)
    assert alpha == pytest.approx(np.minimum(p / factor, q).sum(), rel=0, abs=1e-12)
    assert (law <= p / factor + 1e-12).all()
    assert law.sum() == pytest.approx(1, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    "name", ("token", "block", "recursive", "traversal", "kseq", "match", "greedy"))
def test_a_factor_of_one_is_the_rule_itself(name):
  rule = getattr(verify, name)()
  cases = toys.random_cases(1, 30, 5, 4, "one law" if rule.trees else "chain")
  np.testing.assert_allclose(
      toys.laws_of(verify.lenient(1., rule), cases), toys.laws_of(rule, cases), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ("token", "block", "recursive", "traversal"))
def test_a_smaller_factor_accepts_more(name):
  rule = getattr(verify, name)()
  cases = toys.random_cases(2, 60, 5, 4, "one law" if rule.trees else "chain")
  stays = lambda rule: toys.laws_of(rule, cases)[:, 0].sum()
  assert stays(rule) > stays(verify.lenient(.7, rule)) > stays(verify.lenient(.3, rule))


def test_the_flags_follow_the_inner_rule():
  for inner in (verify.token(), verify.recursive(), verify.block(), verify.traversal()):
    rule = verify.lenient(.5, inner)
    assert not rule.lossless and not rule.coupled
    assert (rule.trees, rule.bottom_up) == (inner.trees, inner.bottom_up)


def test_point_masses_are_scaled_like_any_law():
  # A chosen token is accepted with probability min(1, p / l).
  case = toys.case([0], toys.P3[0])
  law = toys.laws_of(verify.lenient(.5), [case])[0]
  assert law[1].sum() == pytest.approx(.6, rel=0, abs=1e-12)
  np.testing.assert_allclose(law[0], .4 * np.array([0, 4, 3]) / 7, rtol=0, atol=1e-12)


def test_a_sweep_over_the_factor_compiles_once():
  drafts, log_p = toys.stack(toys.random_cases(3, 4, 5, 3, "chain"))
  run = jax.jit(lambda rule, draft, log_p: jax.vmap(rule.decide)(draft, log_p).accept)
  for factor in (1, .8, np.float32(.3)):
    run(verify.lenient(factor), drafts, log_p)
  assert run._cache_size() == 1


@pytest.mark.parametrize("factor", (0, -1, 1.01, float("nan")))
def test_a_factor_outside_of_its_range_is_refused(factor):
  with pytest.raises(ValueError, match="factor must be in"):
    verify.lenient(factor)


def test_a_coupled_rule_is_refused():
  with pytest.raises(ValueError, match="a coupled rule does not read it"):
    verify.lenient(.5, verify.gumbel())
