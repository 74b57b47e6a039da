"""argmax: lowest index among ties, always an index of the row, on both sides of a block's edge."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import logits as lib

argmax = jax.jit(lib.argmax)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 64), (5, 65), (2, 3, 1000)])
def test_argmax_is_the_lowest_index_of_the_largest(shape):
  x = jnp.asarray(np.random.default_rng(0).integers(-3, 4, shape), jnp.float32)
  got = argmax(x)
  assert got.dtype == jnp.int32
  np.testing.assert_array_equal(got, np.argmax(x, -1))


@pytest.mark.parametrize("row,want", [
    ([-np.inf, -np.inf, -np.inf], 0), ([-np.inf, -3e38, -np.inf], 1), ([1.0, np.inf, np.inf], 1),
    ([-0.0, 0.0, 0.0], 0), ([0.0, np.nan, 1.0], 1), ([np.nan] * 3, 0)])
def test_argmax_of_extremes(row, want):
  assert argmax(jnp.asarray(row)) == want


def test_argmax_across_blocks():
  """Ties in two blocks, and the only finite entry at the very end."""
  tied = jnp.zeros(200).at[jnp.asarray([70, 130, 199])].set(2.0)
  last = jnp.full(200, -np.inf).at[199].set(-5.0)
  np.testing.assert_array_equal(argmax(jnp.stack([tied, last])), [70, 199])
