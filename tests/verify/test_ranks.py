"""The order of the tokens, and the mass up to each of them, against a plain sort."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax.verify import ranks


def ratios(kind, vocab):
  rng = np.random.default_rng(vocab)
  made = rng.normal(size=vocab) * 3
  if kind == "ties":
    made = rng.choice([-np.inf, -1., 0., 0.03, 7., 9.], size=vocab)
  return np.zeros(vocab) if kind == "equal" else made


def order(ratio):
  """The tokens in ascending order, by a sort over the keys as the module states them."""
  keys = zip(*(np.asarray(key) for key in ranks.keys(
      jnp.asarray(ratio), jnp.arange(len(ratio), dtype=jnp.int32))))
  return np.array([key[-1] for key in sorted(keys)])


@pytest.mark.parametrize("vocab", [1, 5, 32, 33, 200])
@pytest.mark.parametrize("kind", ["normal", "ties", "equal"])
def test_mass_up_to_each_token(kind, vocab):
  with jax.enable_x64(True):
    ratio, q = ratios(kind, vocab), np.random.default_rng(1).dirichlet(np.ones(vocab))
    got = np.asarray(jax.jit(ranks.mass_up_to)(jnp.asarray(ratio), jnp.asarray(q)))
    expected = np.zeros(vocab)
    expected[order(ratio)] = np.cumsum(q[order(ratio)])
  np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", ["normal", "ties", "equal"])
def test_the_order_is_p_over_q_and_then_the_id(kind):
  """Exactly so within a block of ids, up to the width of a cell beyond."""
  with jax.enable_x64(True):
    small, large = ratios(kind, 32), ratios(kind, 200).clip(-3.9, 3.9)
    np.testing.assert_array_equal(order(small), np.lexsort((np.arange(32), small)))
    in_order = large[order(large)]
  assert (np.maximum.accumulate(in_order) - in_order).max() < 1 / 16


def test_the_highest_of_some_tokens_and_all_its_copies():
  with jax.enable_x64(True):
    ratio = ratios("ties", 200)
    places = np.argsort(order(ratio))
    rng = np.random.default_rng(2)
    for _ in range(50):
      tokens, among = rng.integers(200, size=8).astype(np.int32), rng.random(8) < .7
      got = np.asarray(ranks.highest(
          jnp.asarray(ratio[tokens]), jnp.asarray(tokens), jnp.asarray(among)))
      best = places[tokens][among].max() if among.any() else -1
      np.testing.assert_array_equal(got, among & (places[tokens] == best))


def test_sums_keep_their_digits_from_below():
  """The mass of the lowest tokens is not a difference of large sums."""
  ratio = jnp.linspace(-3, 3, 4096)
  q = jnp.full(4096, 1 / 4096).at[:40].set(1e-12)
  np.testing.assert_allclose(ranks.mass_up_to(ratio, q)[:40], 1e-12 * np.arange(1, 41), rtol=1e-5)
