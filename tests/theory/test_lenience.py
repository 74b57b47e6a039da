"""Lenience against the published example and against a direct search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import theory

P, Q = np.array([0.3, 0.4, 0.3]), np.array([0.6, 0.3, 0.1])


def test_the_example_of_factor_08():
  assert theory.lenient_acceptance(P, Q, 0.8) == pytest.approx(0.775, abs=1e-15)


def test_factor_one_is_the_overlap():
  assert theory.lenient_acceptance(P, Q, 1.0) == pytest.approx(np.minimum(P, Q).sum())


def test_acceptance_is_the_mean_of_the_coins():
  # sum_x q(x) min(1, p(x) / (l q(x))), the appendix's test, over random laws and zero entries
  random = np.random.default_rng(1)
  p, q = random.dirichlet(np.ones(5), 50), random.dirichlet(np.ones(5), 50)
  p[:, 0] += p[:, 1]
  p[:, 1] = 0
  coins = np.minimum(1, p / (0.6 * q))
  np.testing.assert_allclose(theory.lenient_acceptance(p, q, 0.6), (q * coins).sum(-1), rtol=1e-14)


def test_bound_and_its_cap():
  np.testing.assert_allclose(theory.lenient_bound(np.array([0.1, 0.9]), 0.5), [0.2, 1.0])
  assert theory.lenient_bound(jnp.array([0.1, 0.9]), 0.5).dtype == jnp.float32


@pytest.mark.parametrize("factor", [0, -0.1, 1.5, float("nan")])
def test_bad_factors(factor):
  with pytest.raises(ValueError, match="factor"):
    theory.lenient_acceptance(P, Q, factor)
  with pytest.raises(ValueError, match="factor"):
    theory.lenient_bound(P, factor)


def test_under_jit():
  for call in (theory.lenient_acceptance, lambda p, q, factor: theory.lenient_bound(p, factor)):
    np.testing.assert_allclose(
        jax.jit(call)(jnp.asarray(P), jnp.asarray(Q), 0.8), call(P, Q, 0.8), rtol=1e-6)


def test_bad_laws():
  with pytest.raises(ValueError, match="^p must be"):
    theory.lenient_bound(10 * P, 0.5)
  with pytest.raises(ValueError, match="^q must be"):
    theory.lenient_acceptance(P, -Q, 0.5)
