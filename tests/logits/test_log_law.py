"""Laws, samples, the noise behind them, residuals and total variation."""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from specjax import logits as lib
from specjax.logits.noise import threefry

INF = np.inf
log_law = jax.jit(lib.log_law)
residual = jax.jit(lib.log_residual)


@pytest.mark.parametrize("dtype,law_dtype", [
    (jnp.bfloat16, jnp.float32), (jnp.float16, jnp.float32), (jnp.float32, jnp.float32),
    (jnp.float64, jnp.float64)])
def test_a_law_is_at_least_float32_and_sums_to_one(dtype, law_dtype):
  with jax.enable_x64(True):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 50)), dtype)
    law = log_law(x, lib.chain(lib.temperature(0.7), lib.top_k(20), lib.top_p(0.9)))
    assert law.dtype == law_dtype
    np.testing.assert_allclose(jnp.exp(law).sum(-1), 1, rtol=1e-6)
    # Widening comes before the temperature, so nothing is rounded to the narrow type on the way.
    np.testing.assert_array_equal(
        log_law(x, lib.temperature(0.7)), log_law(x.astype(law_dtype), lib.temperature(0.7)))


def test_logits_that_are_not_floats_are_refused():
  with pytest.raises(ValueError, match=r"logits must be float\[..., V\], got int32\(2, 3\)"):
    log_law(jnp.zeros((2, 3), jnp.int32), lib.chain())


def test_a_row_without_a_law_is_nan_and_its_neighbour_is_not():
  x = jnp.asarray([[0.0, np.nan, 1.0], [0.0, INF, 1.0], [-INF, -INF, -INF], [0.0, -INF, 1.0]])
  law = np.asarray(log_law(x, lib.chain()))
  assert np.isnan(law[:3]).all() and law[3, 1] == -INF and np.isfinite(law[3, [0, 2]]).all()


sample_each = jax.jit(jax.vmap(lib.sample, (0, None)))


def draws(law, seed=0):
  return np.asarray(sample_each(jax.random.split(jax.random.key(seed), 20000), law))


def test_samples_follow_the_law():
  """n = 20000, chi-square on 4 cells, false-alarm rate 1e-4; a law 2 % off in one cell fails."""
  p = np.asarray([0.4, 0.05, 0.0, 0.25, 0.3])
  counts = np.bincount(draws(jnp.log(jnp.asarray(p, jnp.float32))), minlength=5)
  assert counts[2] == 0
  live = p > 0
  assert scipy.stats.chisquare(counts[live], 20000 * p[live]).pvalue > 1e-4
  wrong = p + np.asarray([0.02, 0, 0, 0, -0.02])
  assert scipy.stats.chisquare(counts[live], 20000 * wrong[live]).pvalue < 1e-4


def test_an_excluded_token_is_never_drawn():
  for alive in (0, 2, 4):
    law = jnp.full(5, -INF).at[alive].set(0.0)
    np.testing.assert_array_equal(draws(law, seed=alive), alive)
  # However unlikely the only tokens that are left.
  law = jnp.asarray([-INF, -INF, -200.0, -INF, -201.0])
  assert set(draws(law)) == {2, 4}


def test_one_key_couples_two_laws():
  """The same noise field whatever the law, and whatever else is drawn in the batch."""
  keys = jax.random.split(jax.random.key(3), 400)
  p = jax.nn.log_softmax(jnp.asarray([0.0, 1.0, 0.5, -1.0]))
  q = jax.nn.log_softmax(jnp.asarray([0.2, 0.9, 0.6, -1.5]))
  field = jax.vmap(lambda key: lib.noise(key, (4,)))(keys)
  for law in (p, q):
    np.testing.assert_array_equal(sample_each(keys, law), jnp.argmax(law[None] + field, -1))
  assert sample_each(keys, p)[17] == jax.jit(lib.sample)(keys[17], p)
  # At least (1 - TV) / (1 + TV) agree (Daliri et al. 2024); independent draws agree far less.
  tv = float(lib.tv(jnp.exp(p), jnp.exp(q)))
  agree = np.mean(sample_each(keys, p) == sample_each(keys, q))
  assert agree > (1 - tv) / (1 + tv) - 0.07 > 2 * float(jnp.exp(p + q).sum())


def exceedances(field, chunks, size, level):
  """How many of chunks * size noise values lie above the level."""
  above = jax.jit(lambda key: jnp.sum(field(key, (size,)) > level, dtype=jnp.int32))
  keys = jax.random.split(jax.random.key(11), chunks)
  return sum(int(above(key)) for key in keys)


def test_the_noise_reaches_rare_tokens():
  """P(noise > 16) = 1.1e-7; n = 2^26 gives Poisson(7.6), outside [1, 22] with P < 6e-4.

  A token of probability 1e-8 can only win with noise above 16. The default mode of JAX never gets
  there, which is the mutant.
  """
  assert 1 <= exceedances(lib.noise, 16, 2**22, 16.0) <= 22
  low = lambda key, shape: jax.random.gumbel(key, shape, mode="low")
  assert exceedances(low, 2, 2**22, 15.95) == 0


def test_the_words_of_the_noise_are_those_of_threefry():
  key = jax.random.key(7)
  data, counters = jax.random.key_data(key), jnp.arange(100, dtype=jnp.uint32)
  words = jax.jit(threefry)(data, counters[:50], counters[50:])
  expected = jax.extend.random.threefry_2x32(data, counters)
  np.testing.assert_array_equal(jnp.concatenate(words), expected)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
def test_the_noise_has_the_gumbel_law(kind, dtype):
  """Kolmogorov-Smirnov, n = 2^16, false alarms below 1e-6, for all kinds of keys."""
  with jax.enable_x64(dtype == jnp.float64):
    field = lib.noise(jax.random.key(3, impl=kind), (2**16,), dtype)
    assert field.dtype == dtype
  assert scipy.stats.kstest(np.asarray(field, np.float64), "gumbel_r").pvalue > 1e-6


@pytest.mark.full
def test_a_token_of_probability_1e_8_is_drawn():
  """2^12 tokens of 1e-8 each, n = 2^18: Poisson(10.7) hits, outside [1, 28] with P < 3e-5."""
  rare = 2**12
  law = jnp.log(jnp.full(rare + 1, 1e-8, jnp.float32).at[0].set(1 - rare * 1e-8))
  count = jax.jit(lambda key: jnp.sum(
      jax.vmap(lib.sample, (0, None))(jax.random.split(key, 2**10), law) > 0, dtype=jnp.int32))
  hits = sum(int(count(key)) for key in jax.random.split(jax.random.key(5), 2**8))
  assert 1 <= hits <= 28


def exact_residual(log_p, log_q):
  """The residual law in float64 from the very float32 numbers that the library sees."""
  log_p, log_q = np.asarray(log_p, np.float64), np.asarray(log_q, np.float64)
  with np.errstate(invalid="ignore"):
    excess = np.where(log_p > log_q, np.exp(log_p) * -np.expm1(log_q - log_p), 0)
  return excess / excess.sum(-1, keepdims=True)


def random_laws(seed, rows, vocab, excluded=0.0):
  rng = np.random.default_rng(seed)
  x = rng.normal(size=(rows, vocab)) * 2
  x[rng.random(x.shape) < excluded] = -INF
  x[:, 0] = 0
  return jax.nn.log_softmax(jnp.asarray(x, jnp.float32))


@pytest.mark.parametrize("excluded", [0.0, 0.6])
def test_the_residual_is_the_positive_part(excluded):
  log_p, log_q = random_laws(0, 40, 11, excluded), random_laws(1, 40, 11, excluded)
  got = np.asarray(residual(log_p, log_q))
  assert got.dtype == np.float32 and not np.isnan(got).any()
  np.testing.assert_allclose(np.exp(got), exact_residual(log_p, log_q), rtol=2e-5, atol=1e-30)
  np.testing.assert_allclose(
      np.exp(got), lib.residual(jnp.exp(log_p), jnp.exp(log_q)), rtol=1e-3, atol=1e-6)


def naive_log_residual(log_p, log_q):
  excess = jnp.maximum(jnp.exp(log_p) - jnp.exp(log_q), 0)
  return jnp.log(excess) - jnp.log(excess.sum(-1, keepdims=True))


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
def test_nearby_laws_keep_their_digits(distance):
  """q a millionth away from p: the difference of probabilities has lost what this keeps."""
  log_p = random_laws(2, 20, 300)
  nudge = np.random.default_rng(3).normal(size=log_p.shape) * distance
  log_q = jnp.asarray(np.asarray(log_p) + nudge, jnp.float32)
  want = exact_residual(log_p, log_q)
  error = lambda law: np.abs(np.exp(law) - want).sum(-1).max() / 2
  assert error(residual(log_p, log_q)) < 1e-5
  assert distance > 1e-6 or error(naive_log_residual(log_p, log_q)) > 1e-3


def test_equal_laws_leave_p_itself():
  """Zero mass, on real vocabulary sizes too, with excluded tokens and point masses."""
  wide = random_laws(4, 8, 151936, excluded=0.3)
  np.testing.assert_array_equal(residual(wide, wide), wide)
  point = jnp.asarray([[-INF, 0.0, -INF]])
  np.testing.assert_array_equal(residual(point, point), point)
  nearby = jnp.nextafter(wide, jnp.inf)  # at least p everywhere, as rounding may have it
  np.testing.assert_array_equal(residual(wide, jnp.where(wide > -INF, nearby, -INF)), wide)


def test_rounding_alone_still_gives_a_law():
  """One law computed in two ways: the rest is noise, but it is finite and sums to one."""
  x = jnp.asarray(np.random.default_rng(6).normal(size=(8, 151936)) * 3, jnp.float32)
  one = jax.jit(lambda x: jax.nn.log_softmax(x))(x)
  two = jax.jit(lambda x: x + 1 - jax.nn.logsumexp(x + 1, -1, keepdims=True))(x)
  assert (one != two).any()
  law = np.exp(np.asarray(residual(one, two), np.float64))
  assert not np.isnan(law).any()
  np.testing.assert_allclose(law.sum(-1), 1, atol=1e-5)


def test_disjoint_supports_leave_p():
  log_p = jnp.log(jnp.asarray([0.5, 0.5, 0.0, 0.0]))
  log_q = jnp.log(jnp.asarray([0.0, 0.0, 0.5, 0.5]))
  np.testing.assert_allclose(residual(log_p, log_q), log_p, rtol=1e-6)


def test_mass_below_the_smallest_number_is_still_a_law():
  log_p = jnp.asarray([-300.0, -301.0, 0.0])
  log_q = jnp.asarray([-INF, -INF, 0.0])
  np.testing.assert_allclose(
      np.exp(residual(log_p, log_q)), [1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0], rtol=1e-5)


def test_nan_stays_nan():
  good, bad = jnp.log(jnp.full((1, 3), 1 / 3)), jnp.full((1, 3), np.nan)
  for pair in ((good, bad), (bad, good), (bad, bad)):
    assert np.isnan(residual(*pair)).all()


def test_acceptance_and_residual_add_up_to_the_target():
  """min(p, q) + (1 - sum min) r = p, the identity behind every rule, in float64."""
  with jax.enable_x64(True):
    rng = np.random.default_rng(7)
    p, q = jnp.asarray(rng.dirichlet(np.ones(5), 30)), jnp.asarray(rng.dirichlet(np.ones(5), 30))
    accepted = jnp.minimum(p, q)
    rest = 1 - accepted.sum(-1, keepdims=True)
    for law in (jnp.exp(residual(jnp.log(p), jnp.log(q))), lib.residual(p, q)):
      np.testing.assert_allclose(accepted + rest * law, p, atol=1e-15)
    np.testing.assert_allclose(lib.tv(p, q), rest[:, 0], atol=1e-15)


def test_residual_and_tv_of_probabilities():
  p, q = jnp.asarray([0.5, 0.3, 0.2]), jnp.asarray([0.25, 0.25, 0.5])
  np.testing.assert_allclose(lib.residual(p, q), [0.25 / 0.3, 0.05 / 0.3, 0], rtol=1e-6)
  np.testing.assert_array_equal(lib.residual(p, p), p)
  np.testing.assert_allclose(lib.tv(p, q), 0.3, rtol=1e-6)
  np.testing.assert_array_equal(lib.tv(jnp.stack([p, q]), jnp.stack([p, q])), [0, 0])
