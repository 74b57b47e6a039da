"""The law of a Decision, by hand on a tree and for both directions of the walk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from specjax import exact, verify
from specjax.types import Decision, Draft

_PARENTS = (-1, 0, -1, 2)  # node 0 with child 1, its sibling 2 with child 3
_ACCEPT = (.5, .25, .75, .125)


def _law(bottom_up, valid=(True,) * 4, accept=_ACCEPT):
  formula = Partial(lambda draft, log_p: Decision(jnp.asarray(accept), log_p))
  rule = verify.Rule(formula, lossless=False, coupled=False, serves=verify.ANY, bottom_up=bottom_up)
  with jax.enable_x64(True):
    draft = Draft(jnp.arange(4, dtype=jnp.int32), jnp.asarray(_PARENTS, jnp.int32), None,
                  jnp.asarray(valid))
    rows = np.random.default_rng(0).dirichlet(np.ones(5), 5)
    law = np.asarray(exact.law(rule, draft, jnp.log(jnp.asarray(rows))))
  np.testing.assert_allclose(law, law.sum(-1, keepdims=True) * rows, atol=1e-15)
  return law.sum(-1)


def test_top_down_hands_over_to_children_or_siblings():
  np.testing.assert_allclose(
      _law(False), [.5 * .25, .5 * .75, .5 * .25, .5 * .75 * .875, .5 * .75 * .125], atol=1e-15)


def test_bottom_up_ends_at_the_first_accepted_node():
  a, b, c, d = _ACCEPT  # post-order: 1, 0, 3, 2
  rest = (1 - b) * (1 - a)
  np.testing.assert_allclose(
      _law(True), [rest * (1 - d) * (1 - c), (1 - b) * a, b, rest * (1 - d) * c, rest * d],
      atol=1e-15)


@pytest.mark.parametrize("bottom_up", [False, True])
def test_invalid_nodes_are_never_accepted(bottom_up):
  law = _law(bottom_up, valid=(False, False, True, True))
  assert law[1] == law[2] == 0 and law.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("bottom_up", [False, True])
def test_sure_nodes(bottom_up):
  np.testing.assert_allclose(_law(bottom_up, accept=(1., 1., 0., 0.)), [0, 0, 1, 0, 0], atol=0)
  np.testing.assert_allclose(_law(bottom_up, accept=(0., 0., 0., 0.)), [1, 0, 0, 0, 0], atol=0)


@pytest.mark.parametrize(
    "rule", [verify.token(), verify.block(), verify.match(), verify.traversal()])
def test_no_nodes(rule):
  nothing = Draft(
      jnp.zeros(0, jnp.int32), jnp.zeros(0, jnp.int32), jnp.zeros((0, 3)), jnp.zeros(0, bool))
  law = exact.law(rule, nothing, jnp.log(jnp.asarray([[.5, .25, .25]])))
  np.testing.assert_allclose(law, [[.5, .25, .25]], rtol=1e-6)


def test_coupled_rules_have_no_coins_to_sum():
  draft = Draft(jnp.zeros(1, jnp.int32), jnp.full(1, -1), None, jnp.ones(1, bool))
  with pytest.raises(ValueError, match="a coupled rule flips none"):
    exact.law(verify.gumbel(), draft, jnp.zeros((2, 1)))


def test_the_dtype_is_that_of_the_laws():
  even = jnp.log(jnp.full((2, 2), .5))
  draft = Draft(jnp.zeros(1, jnp.int32), jnp.full(1, -1), even[:1], jnp.ones(1, bool))
  assert exact.law(verify.token(), draft, even).dtype == jnp.float32


@pytest.mark.parametrize("wrong", [1.001, -0.001, np.nan])
@pytest.mark.parametrize("bottom_up", [False, True])
def test_what_is_no_probability_gives_no_law(bottom_up, wrong):
  """Even at a node that the walk never meets: after a sure one the last is not tested."""
  formula = Partial(lambda draft, log_p: Decision(jnp.asarray([1, 0, 0, wrong]), log_p))
  rule = verify.Rule(formula, lossless=False, coupled=False, serves=verify.ANY, bottom_up=bottom_up)
  draft = Draft(jnp.arange(4), jnp.asarray(_PARENTS), None, jnp.ones(4, bool))
  assert np.isnan(exact.law(rule, draft, jnp.log(jnp.full((5, 5), .2)))).all()
