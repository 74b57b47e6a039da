"""top_k, top_p and min_p against a sorting oracle, ties and extremes included."""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import logits as lib
from specjax.logits.select import heaviest

INF = np.inf
TINY = 1e-40  # subnormal in float32
ROWS = {
    "plain": [0.3, -1.2, 2.5, 0.1, 1.7],
    "all tied": [1.0] * 7,
    "tied at the cut": [2.0, 1.0, 1.0, 1.0, 3.0, 1.0, -5.0],
    "one-hot": [-INF, -INF, 4.0, -INF],
    "some excluded": [-INF, 0.5, -INF, 0.5, 0.4, -3.0],
    "zeros of both signs": [-0.0, 0.0, -0.0, 0.0, -1.0],
    "subnormal": [-TINY, TINY, 0.0, -1.0, 2 * TINY],
    "wide": [3e38, -3e38, 1.0, 2.9e38],
    "negative": [-7.0, -5.0, -5.0, -90.0, -6.0],
    "one token": [0.7],
}


run = jax.jit(lambda transform, x: transform(x))


# The oracle: the same cuts by sorting, in NumPy float64, without any bisection.


def ranking(row):
  """Indices from the largest logit down, ties by index; zeros and subnormals are one value."""
  row = np.asarray(row)
  info = np.finfo(row.dtype)
  row = np.where(np.abs(row) < info.tiny, 0, row).astype(np.float64)
  return np.argsort(-row, kind="stable")


def softmax(row):
  row = np.asarray(row, np.float64)
  weights = np.exp(row - row.max())
  return weights / weights.sum()


def prefix(order, length):
  keep = np.zeros(len(order), bool)
  keep[order[:length]] = True
  return keep


def sorted_top_k(row, k):
  return prefix(ranking(row), len(row) if k == 0 else k)


def sorted_heaviest(row, weights, target):
  """The shortest prefix of the ranking that weighs `target`; all of it if none does."""
  order = ranking(row)
  reached = np.cumsum(np.asarray(weights)[order]) >= target
  return prefix(order, reached.argmax() + 1 if reached.any() else len(row))


def sorted_top_p(row, p):
  return sorted_heaviest(row, softmax(row), p if p < 1 else np.inf)


def kept(transform, row):
  out = np.asarray(run(transform, jnp.asarray(row, jnp.float32)))
  keep = out > -INF
  np.testing.assert_array_equal(out[keep], np.asarray(row, np.float32)[keep])
  return keep


def finite(row):
  return np.asarray(row) > -INF


@pytest.mark.parametrize("name", ROWS)
def test_top_k_is_the_head_of_the_ranking(name):
  row = np.asarray(ROWS[name], np.float32)
  for k in range(len(row) + 3):
    np.testing.assert_array_equal(
        kept(lib.top_k(k), row), sorted_top_k(row, min(k, len(row))) & finite(row), f"{k=}")


@pytest.mark.parametrize("name", ROWS)
def test_top_p_is_the_shortest_sufficient_head(name):
  row = np.asarray(ROWS[name], np.float32)
  mass = np.cumsum(softmax(row)[ranking(row)])
  # Halfway between the masses of neighbouring prefixes rounding decides nothing.
  steps = np.unique(np.concatenate([[0], mass]))
  for p in list((steps[1:] + steps[:-1]) / 2) + [1e-30, 1.0]:
    if p < 1 and np.min(np.abs(mass - p)) < 1e-6 and p > 1e-6:
      continue
    np.testing.assert_array_equal(
        kept(lib.top_p(p), row), sorted_top_p(row, p) & finite(row), f"{p=}")


def test_the_smallest_p_keeps_the_most_probable_token():
  for p in (1e-45, 1e-38, 1e-6):
    np.testing.assert_array_equal(kept(lib.top_p(p), [1.0, 2.0, 2.0]), [False, True, False])


def random_rows(seed, rows, vocab, levels):
  """Random logits of very different spreads; the coarser the levels, the more ties."""
  rng = np.random.default_rng(seed)
  x = rng.normal(size=(rows, vocab)) * 4.0 ** rng.integers(-2, 3, (rows, 1))
  x = np.round(x * levels) / levels
  x[rng.random(x.shape) < 0.1] = -INF
  x[:, rng.integers(vocab)] = 0.5
  return x


@pytest.mark.parametrize("levels", [1, 8, 10**6])
def test_weights_that_add_up_exactly_give_exactly_the_oracle(levels):
  """With whole numbers as weights every sum is exact, so equality is exact too."""
  rng = np.random.default_rng(levels)
  x = random_rows(levels, 40, 97, levels).astype(np.float32)
  weights = rng.integers(0, 9, x.shape).astype(np.float32)
  target = np.concatenate([rng.integers(1, weights.sum(-1).astype(int)[:-1]), [10**6]])
  mask = jax.jit(heaviest)(x, weights, weights.sum(-1, keepdims=True),
                           jnp.asarray(target[:, None], jnp.float32))
  for got, row, weight, goal in zip(np.asarray(mask), x, weights, target):
    np.testing.assert_array_equal(got, sorted_heaviest(row, weight, goal))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64, jnp.bfloat16])
def test_random_rows_in_every_dtype(dtype):
  with jax.enable_x64(True):
    x = jnp.asarray(random_rows(5, 24, 61, 3)).astype(dtype)
    rows = np.asarray(x.astype(jnp.float64))
    for k in (1, 2, 17, 60, 61, 100):
      out = run(lib.top_k(k), x)
      assert out.dtype == dtype
      want = [sorted_top_k(row, k) & finite(row) for row in rows]
      np.testing.assert_array_equal(np.asarray(out > -INF), want)
    for p in (0.0123, 0.377, 0.9, 0.9987):
      want = [sorted_top_p(row, p) & finite(row) for row in rows]
      masses = [np.cumsum(softmax(row)[ranking(row)]) for row in rows]
      assert np.min(np.abs(np.array(masses) - p)) > 1e-6  # rounding decides nothing
      out = run(lib.top_p(p), x)
      assert out.dtype == dtype
      np.testing.assert_array_equal(np.asarray(out > -INF), want)


@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0, 6.0])
def test_a_real_vocabulary(spread):
  """V = 151936: exact for top-k; for top-p the head and its mass to 1e-6 (float32 sums)."""
  rng = np.random.default_rng(0)
  x = (rng.normal(size=(2, 151936)) * spread).astype(np.float32)
  for k in (1, 50, 100_000):
    out = np.asarray(run(lib.top_k(k), x))
    np.testing.assert_array_equal(out > -INF, [sorted_top_k(row, k) for row in x])
  for p in (0.5, 0.95, 0.9999):
    out = np.asarray(run(lib.top_p(p), x))
    for keep, row in zip(out > -INF, x):
      order = ranking(row)
      mass = np.cumsum(softmax(row)[order])
      size = keep.sum()
      assert keep[order[:size]].all()
      assert mass[size - 1] >= p - 1e-6 and (size == 1 or mass[size - 2] < p + 1e-6)


def test_the_oracle_tells_wrong_cuts_apart():
  """Keeping every tie, breaking ties from the back, or dropping the crossing token is seen."""
  row = np.asarray(ROWS["tied at the cut"], np.float32)
  every_tie = row >= np.sort(row)[::-1][3]
  from_the_back = sorted_top_k(row[::-1], 4)[::-1]
  assert (every_tie != sorted_top_k(row, 4)).any() and (from_the_back != sorted_top_k(row, 4)).any()
  p = softmax(ROWS["plain"])
  order = ranking(ROWS["plain"])
  short = prefix(order, (np.cumsum(p[order]) < 0.8).sum())
  assert (short != sorted_top_p(ROWS["plain"], 0.8)).any()


def test_top_1_is_the_argmax_and_temperature_0():
  x = jnp.asarray(random_rows(3, 30, 41, 2), jnp.float32)
  greedy = np.asarray(run(lib.temperature(0), x)) > -INF
  np.testing.assert_array_equal(np.asarray(run(lib.top_k(1), x)) > -INF, greedy)
  np.testing.assert_array_equal(greedy.argmax(-1), np.asarray(jnp.argmax(x, -1)))
  subnormal = jnp.asarray([0.0, TINY, -0.0], jnp.float32)
  np.testing.assert_array_equal(run(lib.top_k(1), subnormal), [0, -INF, -INF])


def test_min_p():
  row = np.log(np.asarray([0.4, 0.1, 0.3, 0.2, 0.0001]))
  for ratio, keep in ((0, 5), (0.0002, 5), (0.2, 4), (0.3, 3), (0.6, 2), (0.9, 1), (1, 1)):
    assert kept(lib.min_p(ratio), row).sum() == keep, ratio
  np.testing.assert_array_equal(kept(lib.min_p(1), [2.0, 1.0, 2.0]), [True, False, True])
  np.testing.assert_array_equal(kept(lib.min_p(0.5), [-INF, 1.0]), [False, True])


@pytest.mark.parametrize("transform", [lib.top_k(2), lib.top_p(0.5), lib.min_p(0.9)])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, INF])
def test_a_row_that_is_no_law_stays_none(transform, bad):
  """NaN with the sign bit set ranks below -inf by its bits; it must not be cut away."""
  x = jnp.asarray([[1.0, 2.0, 3.0, bad, 0.0], [1.0, 2.0, 3.0, 0.0, 0.0]], jnp.float32)
  if np.isnan(bad):
    x = x.at[0, 3].set(jnp.copysign(jnp.float32(np.nan), jnp.float32(np.copysign(1, bad))))
  law = np.asarray(jax.jit(lib.log_law)(x, transform))
  assert np.isnan(law[0]).all() and np.isfinite(law[1]).any()


@pytest.mark.parametrize("transform,off", [
    (lib.top_k, 0), (lib.top_k, 5), (lib.top_k, 2**31 - 1), (lib.top_p, 1), (lib.min_p, 0)])
def test_off_changes_no_bit(transform, off):
  x = jnp.asarray([[1.0, -0.0, -INF, TINY, 7.0], [-INF] * 5], jnp.float32)
  np.testing.assert_array_equal(
      np.asarray(run(transform(off), x)).view(np.uint32), np.asarray(x).view(np.uint32))


@pytest.mark.parametrize("make,values", [
    (lib.top_k, [0, 3, 9]), (lib.top_p, [0.3, 1.0, 0.8]), (lib.min_p, [0.5, 0.0, 0.01])])
def test_each_row_may_have_its_own_number(make, values):
  x = jnp.asarray(random_rows(9, 12, 31, 4).reshape(3, 4, 31), jnp.float32)
  apart = jnp.stack([run(make(v), row) for v, row in zip(values, x)])
  np.testing.assert_array_equal(run(make(values), x), apart)
  np.testing.assert_array_equal(run(make(values), x[:, 0]), apart[:, 0])
  np.testing.assert_array_equal(jax.vmap(run)(make(values), x), apart)


def test_bad_numbers_are_named():
  for make, bad in ((lib.top_k, -1), (lib.top_k, 1.5), (lib.top_k, np.nan), (lib.top_k, None),
                    (lib.top_k, 2**31), (lib.top_p, 0), (lib.top_p, 1.01), (lib.top_p, np.nan),
                    (lib.top_p, [0.5, -0.1]), (lib.top_p, "all"), (lib.min_p, -0.1),
                    (lib.min_p, 1.1), (lib.min_p, np.nan), (lib.min_p, True)):
    with pytest.raises(ValueError, match=make.__name__):
      make(bad)


def primitives(jaxpr):
  for equation in jaxpr.eqns:
    yield equation.primitive.name
    for inner in jax.extend.core.jaxprs_in_params(equation.params):
      yield from primitives(inner)


@pytest.mark.parametrize("transform", [lib.top_k(2), lib.top_p(0.5), lib.min_p(0.9)])
def test_nothing_sorts_the_vocabulary(transform):
  names = set(primitives(jax.make_jaxpr(transform)(jnp.zeros((2, 8))).jaxpr))
  assert not names & {"sort", "top_k", "approx_top_k", "scatter", "cumsum"}, names


def test_the_law_of_what_is_left_can_be_differentiated():
  x = jnp.asarray([0.0, 1.0, 2.0, 3.0])
  cut = lib.chain(lib.temperature(0.7), lib.top_k(3), lib.top_p(0.9), lib.min_p(0.01))
  law = jax.jit(lib.log_law)
  gradient = jax.grad(lambda x: law(x, cut)[3])(x)
  p = jnp.exp(law(x, cut))
  np.testing.assert_allclose(gradient, (jnp.eye(4)[3] - p) / 0.7, atol=1e-6)
