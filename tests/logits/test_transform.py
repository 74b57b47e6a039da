"""Composition, temperature, forbidden tokens, and what a sweep compiles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from specjax import logits as lib

INF = np.inf
run = jax.jit(lambda transform, x, *counts: transform(x, *counts))


def logits(*shape, seed=0):
  return jnp.asarray(np.random.default_rng(seed).normal(size=shape) * 3, jnp.float32)


def test_chain_applies_in_order_and_alone_is_the_identity():
  x = logits(2, 5)
  np.testing.assert_array_equal(run(lib.chain(), x), x)
  double, shift = Partial(lambda x: 2 * x), Partial(lambda x: x + 1)
  np.testing.assert_array_equal(run(lib.chain(double, shift), x), 2 * x + 1)
  np.testing.assert_array_equal(run(lib.chain(lib.chain(shift), double), x), 2 * (x + 1))


def test_the_order_of_top_k_and_top_p_matters():
  """The nucleus of the renormalised head against the head of the nucleus."""
  x = jnp.log(jnp.asarray([0.5, 0.3, 0.2], jnp.float32))
  head_first = run(lib.chain(lib.top_k(2), lib.top_p(0.6)), x)
  nucleus_first = run(lib.chain(lib.top_p(0.6), lib.top_k(2)), x)
  np.testing.assert_array_equal(head_first > -INF, [True, False, False])
  np.testing.assert_array_equal(nucleus_first > -INF, [True, True, False])


def test_a_bare_function_is_a_transform():
  x, counts = logits(3), jnp.zeros(3, jnp.int32)
  mask_first = lambda x: x.at[0].set(-INF)
  for transform in (mask_first, lib.chain(mask_first, lib.temperature(1.0))):
    np.testing.assert_array_equal(lib.log_law(x, transform, counts)[0], -INF)
    np.testing.assert_allclose(jnp.exp(lib.log_law(x, transform)).sum(), 1, atol=1e-6)


@pytest.mark.parametrize("make,values", [
    (lib.temperature, [0, 0.0, 0.7, 1, np.float32(2), np.float64(3), jnp.float32(1e-9)]),
    (lib.top_k, [0, 1, np.int64(50), jnp.int32(7), 3.0]),
    (lib.top_p, [1, 0.9, np.float32(0.1)]),
    (lib.min_p, [0, 0.1, 1]),
    (lib.repetition_penalty, [1, 1.2]),
    (lib.presence_penalty, [0, -0.5]),
    (lib.frequency_penalty, [0, 0.25]),
])
def test_a_sweep_compiles_once(make, values):
  traces = []

  @jax.jit
  def law(transform, x, counts):
    traces.append(transform)
    return lib.log_law(x, transform, counts)

  for value in values:
    transform = lib.chain(lib.temperature(1.0), lib.chain(make(value)))
    assert np.isfinite(np.asarray(law(transform, logits(2, 5), jnp.ones((2, 5), jnp.int32)))).any()
  assert len(traces) == 1


def test_every_transform_takes_logits_or_logits_and_counts():
  x, counts = logits(4), jnp.asarray([0, 1, 2, 0], jnp.int32)
  for transform in (lib.temperature(0.5), lib.top_k(2), lib.top_p(0.5), lib.min_p(0.5),
                    lib.forbid([1]), lib.chain(lib.top_k(3), lib.temperature(2.0))):
    assert isinstance(transform, Partial) and not lib.uses_counts(transform)
    np.testing.assert_array_equal(run(transform, x), run(transform, x, counts))


def test_temperature_divides():
  x = logits(3, 7)
  np.testing.assert_array_equal(run(lib.temperature(1), x), x)
  np.testing.assert_array_equal(run(lib.temperature(0.5), x), 2 * x)
  with jax.enable_x64(True):
    wide = jnp.asarray(np.asarray(x), jnp.float64)
    np.testing.assert_allclose(run(lib.temperature(0.7), wide), np.asarray(wide) / 0.7, rtol=1e-15)


def test_temperature_0_is_the_lowest_argmax_alone():
  x = jnp.asarray([[1.0, 3.0, 3.0, -INF], [-2.0, -2.0, -INF, -9.0], [0.0, -0.0, 0.0, 0.0]])
  law = np.asarray(jax.jit(lib.log_law)(x, lib.temperature(0)))
  np.testing.assert_array_equal(law, np.where(np.eye(4)[[1, 0, 0]] > 0, 0, -INF))


@pytest.mark.parametrize("small", [1.2e-38, 1e-37, 1e-30, 1e-12, 1e-6])
def test_tiny_temperatures_stay_laws(small):
  """All mass on the largest logit; equal ones share it, as at every positive temperature."""
  x = jnp.asarray([[50.0, 80.0, -INF, 79.0, -300.0], [-5.0, -9.0, -5.0, -INF, -1e30]])
  law = np.asarray(jax.jit(lib.log_law)(x, lib.temperature(small)))
  want = np.log(np.asarray([[0, 1, 0, 0, 0], [0.5, 0, 0.5, 0, 0]]), where=[
      [False, True, False, False, False], [True, False, True, False, False]],
                out=np.full((2, 5), -INF))
  np.testing.assert_allclose(np.exp(law), np.exp(want), atol=1e-6)
  assert not np.isnan(law).any()


def test_subnormal_temperatures_count_as_0():
  x = jnp.asarray([1.0, 1.0, 0.0])
  np.testing.assert_array_equal(run(lib.temperature(1e-40), x), [1.0, -INF, -INF])


def test_what_follows_temperature_0_leaves_it_alone():
  x = logits(4, 9)
  after = lib.chain(lib.temperature(0), lib.top_k(3), lib.top_p(0.3), lib.min_p(0.5),
                    lib.temperature(0.8), lib.repetition_penalty(1.3), lib.frequency_penalty(2.0))
  law = jax.jit(lib.log_law)(x, after, jnp.ones((4, 9), jnp.int32))
  np.testing.assert_array_equal(law, jax.jit(lib.log_law)(x, lib.temperature(0)))
  np.testing.assert_array_equal(np.argmax(law, -1), np.argmax(x, -1))


def test_each_row_may_have_its_own_temperature():
  """Axes of the number are the first axes of the logits, so [B] fits [B, V] and [B, T, V]."""
  x, values = logits(3, 2, 5), [0.0, 0.7, 2.0]
  apart = jnp.stack([run(lib.temperature(t), row) for t, row in zip(values, x)])
  np.testing.assert_array_equal(run(lib.temperature(values), x), apart)
  np.testing.assert_array_equal(run(lib.temperature(values), x[:, 0]), apart[:, 0])
  np.testing.assert_array_equal(run(lib.temperature(np.array(values)[:, None]), x), apart)
  np.testing.assert_array_equal(jax.vmap(run)(lib.temperature(values), x), apart)
  with pytest.raises(ValueError, match="first axes"):
    lib.temperature(values)(x[0, 0])
  with pytest.raises(ValueError, match=r"shape \(\d,\) does not fit logits of shape \(1, "):
    lib.temperature(values)(x[:1])  # would make rows out of one


@pytest.mark.parametrize("bad", [-0.1, np.nan, INF, [1.0, -1.0], "hot", None, True])
def test_bad_temperatures_are_refused(bad):
  with pytest.raises(ValueError, match="temperature must be a finite number >= 0"):
    lib.temperature(bad)


@pytest.mark.parametrize("make", [
    lib.temperature, lib.repetition_penalty, lib.presence_penalty, lib.frequency_penalty])
def test_numbers_that_overflow_are_refused(make):
  """As infinity, they would make NaN of excluded tokens."""
  with pytest.raises(ValueError, match=f"{make.__name__} must fit float32, but it is 1e.39"):
    make(1e39)


def test_traced_numbers_are_taken_as_they_are():
  x = logits(5)
  law = jax.jit(lambda t, k, p: lib.log_law(
      x, lib.chain(lib.temperature(t), lib.top_k(k), lib.top_p(p))))
  np.testing.assert_array_equal(
      law(0.5, 3, 0.9),
      jax.jit(lib.log_law)(x, lib.chain(lib.temperature(0.5), lib.top_k(3), lib.top_p(0.9))))


@pytest.mark.parametrize("bad", [np.nan, INF])
@pytest.mark.parametrize("value", [0, 1e-38, 0.7])
def test_temperature_gives_no_law_to_a_row_that_has_none(bad, value):
  x = jnp.asarray([[1.0, bad, 2.0], [1.0, 3.0, 2.0]])
  law = np.asarray(jax.jit(lib.log_law)(x, lib.temperature(value)))
  assert np.isnan(law[0]).all() and not np.isnan(law[1]).any()


def test_forbid_by_ids_or_by_mask():
  x = logits(2, 3, 5)
  want = np.where(np.isin(np.arange(5), [1, 4]), -INF, x)
  for tokens in ([1, 4], (4, 1, 4), np.array([1, 4, 5, 900]), jnp.array([4, 1]),
                 np.isin(np.arange(5), [1, 4])):
    np.testing.assert_array_equal(run(lib.forbid(tokens), x), want)
    np.testing.assert_array_equal(run(lib.forbid(tokens), x[0, 0]), want[0, 0])
  np.testing.assert_array_equal(run(lib.forbid([]), x), x)


def test_forbidding_everything_leaves_no_law():
  assert np.isnan(lib.log_law(logits(3), lib.forbid([0, 1, 2]))).all()


def test_bad_tokens_are_refused():
  for bad in ([-1, 2], [[1, 2]], 3, [0.5]):
    with pytest.raises(ValueError, match="forbid"):
      lib.forbid(bad)
  with pytest.raises(ValueError, match="does not fit"):
    lib.forbid(np.zeros(4, bool))(logits(2, 5))
