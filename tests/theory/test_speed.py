"""Speed formulas against sums, simulation, the published table and brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import theory

ALPHAS = np.array([0.0, 0.1, 0.37, 0.5, 0.8, 0.999, 1.0])
GAMMAS = np.array([0, 1, 2, 5, 17])


def test_expected_tokens_is_the_sum_of_the_powers():
  for gamma in GAMMAS:
    powers = sum(ALPHAS**length for length in range(gamma + 1))
    np.testing.assert_allclose(theory.expected_tokens(ALPHAS, gamma), powers, rtol=1e-14)


def test_expected_tokens_at_the_ends_is_exact():
  assert theory.expected_tokens(1.0, 7) == 8
  assert theory.expected_tokens(0.0, 7) == 1
  assert theory.expected_tokens(0.3, 0) == 1
  assert theory.expected_tokens(1e-300, 3) == 1


def test_expected_tokens_near_one_does_not_cancel():
  missing = 1e-13
  # 1 + a + ... + a^9 = 10 - 45 (1 - a) + O((1 - a)^2)
  assert theory.expected_tokens(1 - missing, 9) == pytest.approx(10 - 45 * missing, abs=1e-14)


def test_expected_tokens_agrees_with_simulated_rounds():
  # 200000 rounds; the mean of counts with variance below 4 has sigma below 0.0045, and 4.5 sigma
  # means a false alarm in 1 of 150000 seeds.
  rounds, alpha, gamma = 200_000, 0.7, 4
  coins = np.random.default_rng(0).random((rounds, gamma)) < alpha
  counts = 1 + np.cumprod(coins, axis=1).sum(1)
  assert abs(counts.mean() - theory.expected_tokens(alpha, gamma)) < 0.02
  assert abs(counts.mean() - theory.expected_tokens(alpha + 0.02, gamma)) > 0.02


def test_jax_arrays_stay_in_jax_and_differentiate():
  alpha = jnp.array([0.0, 0.25, 0.9, 1.0], jnp.float32)
  tokens = jax.jit(theory.expected_tokens)(alpha, 3)
  assert isinstance(tokens, jax.Array) and tokens.dtype == jnp.float32
  np.testing.assert_allclose(tokens, theory.expected_tokens(np.asarray(alpha), 3), rtol=1e-6)
  slope = jax.grad(lambda a: theory.speedup(a, 3, 0.1))(jnp.float32(0.5))
  assert slope == pytest.approx((1 + 2 * 0.5 + 3 * 0.25) / 1.3, rel=1e-5)
  slopes = jax.vmap(jax.grad(lambda a: theory.speedup(a, 3, 0.1)))(alpha)
  exact = (1 + 2 * np.asarray(alpha) + 3 * np.asarray(alpha)**2) / 1.3
  np.testing.assert_allclose(slopes, exact, rtol=1e-5)


def test_integer_gammas_as_jax_arrays():
  tokens = theory.expected_tokens(0.5, jnp.arange(3))
  np.testing.assert_allclose(tokens, [1, 1.5, 1.75])


def test_arguments_broadcast():
  table = theory.speedup(ALPHAS[:, None], GAMMAS[None, :], 0.05)
  assert table.shape == (7, 5)
  assert table[4, 3] == pytest.approx(2.9514, abs=1e-4)


@pytest.mark.parametrize("alpha,gamma,operations,speed", [
    (0.6, 2, 1.53, 1.96), (0.7, 3, 1.58, 2.53), (0.8, 2, 1.23, 2.44),
    (0.8, 5, 1.63, 3.69), (0.9, 2, 1.11, 2.71), (0.9, 10, 1.60, 6.86)])
def test_leviathan_table_1(alpha, gamma, operations, speed):
  assert theory.operation_factor(alpha, gamma, 0) == pytest.approx(operations, abs=0.005)
  assert theory.speedup(alpha, gamma, 0) == pytest.approx(speed, abs=0.005)


def test_predicted_speedup_counts_the_window_and_the_drafting():
  tokens = theory.expected_tokens(0.8, 5)
  assert theory.predicted_speedup(tokens, 5, 0.05) == theory.speedup(0.8, 5, 0.05)
  assert theory.predicted_speedup(3.0, 4, 0.1, window_cost=1.6) == pytest.approx(1.5)
  assert theory.predicted_speedup(1.0, 0, 0.3) == 1


@pytest.mark.parametrize("c,gammas,speeds", [
    (0.01, [5, 7, 9, 14, 24], [1.875, 2.297, 2.972, 4.232, 7.486]),
    (0.02, [4, 6, 8, 11, 19], [1.794, 2.170, 2.758, 3.817, 6.365]),
    (0.05, [3, 4, 6, 8, 13], [1.630, 1.921, 2.353, 3.092, 4.674]),
    (0.10, [2, 3, 4, 6, 10], [1.458, 1.674, 1.981, 2.470, 3.431])])
def test_optimal_gamma_table(c, gammas, speeds):
  alphas = np.array([0.5, 0.6, 0.7, 0.8, 0.9])
  best = theory.optimal_gamma(alphas, c)
  np.testing.assert_array_equal(best, gammas)
  np.testing.assert_allclose(theory.speedup(alphas, best, c), speeds, atol=5e-4)


def test_optimal_gamma_against_brute_force():
  alphas, costs = np.meshgrid(np.linspace(0, 0.97, 23), np.linspace(0.003, 1.3, 19))
  gammas = np.arange(400).reshape(400, 1, 1)
  speeds = theory.speedup(alphas[None], gammas, costs[None])
  np.testing.assert_array_equal(theory.optimal_gamma(alphas, costs), speeds.argmax(0))


def test_optimal_gamma_at_the_ends():
  assert theory.optimal_gamma(0.3, 0.3) == 0  # corollary 3.9: a gain needs alpha > c
  assert theory.optimal_gamma(0.3001, 0.3) == 1
  assert theory.optimal_gamma(0.0, 0.0) == 0
  assert theory.optimal_gamma(1.0, 0.5) == 512
  assert theory.optimal_gamma(1.0, 0.5, max_gamma=20) == 20
  assert theory.optimal_gamma(0.9, 0.0, max_gamma=20) == 20
  assert jax.jit(theory.optimal_gamma)(jnp.float32(0.8), jnp.float32(0.05)) == 8


def test_break_even_alpha():
  assert theory.break_even_alpha(1, 0.3) == pytest.approx(0.3, abs=1e-12)
  assert theory.break_even_alpha(4, 0.0) == 0
  assert theory.break_even_alpha(4, 1.0) == pytest.approx(1.0)
  assert np.isnan(theory.break_even_alpha(4, 1.1))
  gammas, costs = np.array([1, 2, 5, 8]), np.array([[0.02], [0.2], [0.7]])
  alpha = theory.break_even_alpha(gammas, costs)
  np.testing.assert_allclose(theory.speedup(alpha, gammas, costs), 1, atol=1e-12)


def test_break_even_alpha_with_a_window_that_costs():
  alpha = theory.break_even_alpha(4, 0.05, window_cost=1.3)
  tokens = theory.expected_tokens(alpha, 4)
  assert theory.predicted_speedup(tokens, 4, 0.05, window_cost=1.3) == pytest.approx(1)
  assert alpha > theory.break_even_alpha(4, 0.05)


@pytest.mark.parametrize("call,name", [
    (lambda: theory.expected_tokens(1.01, 3), "alpha"),
    (lambda: theory.expected_tokens(-0.1, 3), "alpha"),
    (lambda: theory.expected_tokens(float("nan"), 3), "alpha"),
    (lambda: theory.expected_tokens(np.array([0.5, 2.0]), 3), "alpha"),
    (lambda: theory.expected_tokens(0.5, -1), "gamma"),
    (lambda: theory.speedup(0.5, 3, -0.1), "c"),
    (lambda: theory.operation_factor(0.5, 3, -0.1), "c_hat"),
    (lambda: theory.predicted_speedup(-1.0, 3, 0.1), "tau"),
    (lambda: theory.predicted_speedup(2.0, 3, 0.1, -1), "window_cost"),
    (lambda: theory.optimal_gamma(1.5, 0.1), "alpha"),
    (lambda: theory.optimal_gamma(0.5, -0.1), "c"),
    (lambda: theory.break_even_alpha(-1, 0.1), "gamma")])
def test_values_out_of_bounds_are_named(call, name):
  with pytest.raises(ValueError, match=f"^{name} must be"):
    call()
