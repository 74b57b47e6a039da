"""From logits to laws, and from laws to tokens.

`log_law` is the only way from logits to probabilities, for target and drafter alike. `sample` is
the only way from a law to a token: an argmax over the law plus Gumbel noise, so that two laws read
with one key are coupled (Daliri, Musco, Suresh 2024, arXiv 2408.07978).
"""

import jax
import jax.numpy as jnp

from specjax.types import Array


def log_law(logits: Array, transform, counts: Array | None = None) -> Array:
  """Normalised log-probabilities float[..., V] of the transformed logits, -inf where excluded.

  Logits narrower than float32 are widened first. `counts` int32[..., V] says how often each token
  stands in the text so far; only penalties read it. A NaN or +inf logit, or a row with no token
  left, gives NaN in the whole row: callers must look for it, it never turns into a token here.
  """
  logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
  logits = transform(logits) if counts is None else transform(logits, counts)
  return jax.nn.log_softmax(logits, axis=-1)


def sample(key: Array, log_p: Array) -> Array:
  """One token int32[] from the law float[V]; the key is consumed."""
  return jnp.argmax(log_p + jax.random.gumbel(key, log_p.shape, log_p.dtype)).astype(jnp.int32)


def log_residual(log_p: Array, log_q: Array) -> Array:
  """The law proportional to [p - q]+ over the last axis, float[..., V].

  Where p <= q everywhere the mass is zero; exact arithmetic never samples such a row, floats may,
  and p itself is then returned rather than a NaN or an arbitrary token.
  """
  residual = jnp.maximum(jnp.exp(log_p) - jnp.exp(log_q), 0)
  mass = residual.sum(-1, keepdims=True)
  return jnp.where(mass > 0, jnp.log(residual) - jnp.log(jnp.where(mass > 0, mass, 1)), log_p)
