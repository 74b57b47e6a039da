"""Tokens drawn with noise that nobody shares."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from specjax.logits import law
from specjax.types import Array, PAD


def sample_uncoupled(key: Array, log_p: Array) -> Array:
  """One token int32[] from the law float[V], without noise for all V tokens; the key is consumed.

  First a block of about sqrt(V) tokens by its mass, then a token of the block: the law of
  `law.sample` in a fraction of its time. It is no coupling: of two near laws read with one key the
  tokens may differ more often than they must, so what drafter and target share is drawn by
  `law.sample`.

  An excluded token (-inf) is never returned; PAD is where the row holds a NaN or no token at all.
  """
  vocab = log_p.shape[0]
  width = math.isqrt(vocab - 1) + 1
  mass = jnp.pad(jnp.exp(log_p), (0, -vocab % width)).reshape(-1, width).sum(-1)
  of_block, in_block = jax.random.split(key)
  block = law.sample(of_block, jnp.log(mass))
  # The last block may be cut short: read a whole one that ends there, without the block before.
  first = jnp.minimum(block * width, vocab - width)
  tokens = first + jnp.arange(width, dtype=jnp.int32)
  inside = lax.dynamic_slice(log_p, (first,), (width,))
  inside = jnp.where(tokens >= block * width, inside, -jnp.inf)
  token = first + law.sample(in_block, inside)
  return jnp.where(mass.sum() > 0, token, PAD)
