"""The Gumbel field of a key: the noise of every token at one position."""

import math

import jax
import jax.numpy as jnp

from specjax.types import Array

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA


def noise(key: Array, shape: tuple, dtype=jnp.float32) -> Array:
  """The Gumbel field that `law.sample` reads with this key, float[shape].

  Each entry comes from a uniform number of 46 bits and is faithful down to about 1e-14. The 23 bits
  that `jax.random.gumbel` takes by default never exceed 16: a token of probability 1e-8 would
  almost never win. Its mode "high" has the formula that is used here.
  """
  high, low = (word.reshape(shape) for word in _words(key, math.prod(shape)))
  high, low = (high >> 9).astype(dtype) * 2.0**-23, (low >> 9).astype(dtype) * 2.0**-46
  # From one half on a float32 has no room for the lower bits, and they could round it up to 1.
  uniform = jnp.where(high < 0.5, high + low + jnp.finfo(dtype).tiny, high)
  return -jnp.log(-jnp.log1p(-uniform))


def _words(key: Array, size: int) -> tuple[Array, Array]:
  """Two independent words uint32[size] for each entry.

  Threefry makes two words at a time, of which `jax.random.bits` leaves one, and on CPU it keeps
  every round in memory. Written out, the rounds fuse with what reads them: a third of the time.
  """
  if str(jax.random.key_impl(key)) != "threefry2x32":
    high, low = jax.random.bits(key, (2, size), jnp.uint32)
    return high, low
  index = jnp.arange(size, dtype=jnp.uint32)
  return threefry(jax.random.key_data(key), index, index + jnp.uint32(size))


def threefry(key: Array, x: Array, y: Array) -> tuple[Array, Array]:
  """The block cipher Threefry-2x32 with 20 rounds (Salmon et al., SC 2011), as in `jax.random`.

  Args:
    key: uint32[2].
    x, y: uint32[...], the two words of each counter.

  Returns:
    Two words uint32[...] for each counter.
  """
  keys = key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY)
  x, y = x + keys[0], y + keys[1]
  for group in range(5):
    for rotation in _ROTATIONS[group % 2]:
      x = x + y
      y = x ^ ((y << rotation) | (y >> (32 - rotation)))
    x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + jnp.uint32(group + 1)
  return x, y
