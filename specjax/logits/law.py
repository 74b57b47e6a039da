"""From logits to laws, and from laws to tokens.

`log_law` is the only way from logits to probabilities, for target and drafter alike. `sample` is
the only way from a law to a token: an argmax over the law plus Gumbel noise, so that two laws read
with one key are coupled (Daliri, Musco, Suresh 2024, arXiv 2408.07978).
"""

import jax
import jax.numpy as jnp

from specjax.logits.noise import noise
from specjax.logits.number import widen
from specjax.logits.select import argmax
from specjax.logits.transform import apply
from specjax.types import Array


def log_law(logits: Array, transform, counts: Array | None = None) -> Array:
  """Normalised log-probabilities float[..., V] of the transformed logits, -inf where excluded.

  Logits narrower than float32 are widened first. `counts` int32[..., V] says how often each token
  stands in the text so far; only penalties read it. A NaN or +inf logit, or a row with no token
  left, gives NaN in the whole row: callers must look for it, it never turns into a token here.
  """
  return jax.nn.log_softmax(apply(transform, widen(logits), counts), axis=-1)


def sample(key: Array, log_p: Array) -> Array:
  """One token int32[] from the law float[V]; the key is consumed.

  An excluded token (-inf) is never returned. A NaN row has no law to draw from: the answer is
  a token that means nothing, and callers look for NaN before they use it.
  """
  return argmax(log_p + noise(key, log_p.shape, log_p.dtype))


def log_residual(log_p: Array, log_q: Array) -> Array:
  """The law proportional to [p - q]+ over the last axis, float[..., V].

  Leviathan et al. 2023 (section 2.3, arXiv 2211.17192). Differences are taken between logarithms,
  so that nearby laws keep their digits. Where p <= q everywhere the mass is zero; exact arithmetic
  never samples such a row, floats may, and p itself is then returned rather than a NaN or an
  arbitrary token. NaN in either law stays NaN.
  """
  # log(p - q) = log p + log(1 - q / p); the test also takes out -inf on both sides.
  below = log_p <= log_q
  excess = log_p + jnp.log(-jnp.expm1(jnp.where(below, -1, log_q - log_p)))
  log_r = jnp.where(below, -jnp.inf, excess)
  empty = jnp.max(log_r, axis=-1, keepdims=True) == -jnp.inf
  return jnp.where(empty, log_p, jax.nn.log_softmax(jnp.where(empty, 0, log_r), axis=-1))


def residual(p: Array, q: Array) -> Array:
  """[p - q]+ normalised over the last axis, float[..., V]; p itself where its mass is zero."""
  excess = jnp.maximum(p - q, 0)
  mass = excess.sum(-1, keepdims=True)
  return jnp.where(mass > 0, excess / jnp.where(mass > 0, mass, 1), p)


def tv(p: Array, q: Array) -> Array:
  """Total variation between laws over the last axis, float[...]: half of sum |p - q|."""
  return jnp.abs(p - q).sum(-1) / 2
