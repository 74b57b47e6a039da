"""Sums over the vocabulary lose nothing by being products with ones."""

import jax
import jax.numpy as jnp
import numpy as np

from specjax.logits import total


def test_it_is_the_sum_over_the_last_axis():
  x = np.random.default_rng(0).random((3, 2, 1001))
  with jax.enable_x64(True):
    np.testing.assert_allclose(total(jnp.asarray(x)), x.sum(-1), rtol=1e-14)
  narrow = jax.jit(jax.vmap(total))(jnp.asarray(x, jnp.float32))
  np.testing.assert_allclose(narrow, x.sum(-1), rtol=1e-6)


def test_a_law_over_a_large_vocabulary_sums_to_one_in_float32():
  law = jax.nn.softmax(4 * jax.random.normal(jax.random.key(0), (4, 151_936)))
  np.testing.assert_allclose(total(law), 1, rtol=0, atol=2e-6)


def test_nan_stays_nan():
  assert np.isnan(total(jnp.array([1., jnp.nan, 2.])))
