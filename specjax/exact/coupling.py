"""How often two laws agree when they are read with shared noise, in closed form.

Laws are probabilities float[V], normalised; results are float[] and follow their dtype. Time and
memory of the Gumbel forms are O(V^2).
"""

import jax.numpy as jnp

from specjax.logits import law
from specjax.types import Array


def gumbel_acceptance(p: Array, q: Array) -> Array:
  """P(argmax_x log p(x) + G(x) = argmax_x log q(x) + G(x)), the acceptance of `gumbel`.

  sum_j 1 / sum_i max(p_i / p_j, q_i / q_j) over the tokens that both laws can draw (Daliri, Musco,
  Suresh 2024, arXiv 2408.07978, section 3).
  """
  return _agreement(p, q, jnp.zeros_like(p[0]))


def list_gumbel_bound(p: Array, q: Array, paths: Array | int) -> Array:
  """A lower bound of the acceptance of `list_gumbel` at one position, all K paths drawing from q.

  sum_j K / sum_i (max(p_i / p_j, q_i / q_j) + (K - 1) p_i / p_j) (Rowan, Phan, Khisti, NeurIPS
  2025, arXiv 2506.05632, theorem 1). Exact for K = 1, for p = q and where q is a point mass.
  """
  return paths * _agreement(p, q, jnp.asarray(paths - 1, p.dtype))


def minhash_acceptance(p: Array, q: Array) -> Array:
  """The agreement of weighted MinHash: sum min(p, q) (1 + |p - q|) / sum max(p, q).

  Both sides read one sequence of darts thrown below max(p, q) and keep their first dart that falls
  below their own law (the alternative of Daliri et al.; never above `gumbel_acceptance`).
  """
  return (jnp.minimum(p, q) * (1 + jnp.abs(p - q))).sum() / jnp.maximum(p, q).sum()


def guarantee(p: Array, q: Array) -> Array:
  """(1 - TV) / (1 + TV), the best acceptance that a rule without communication can promise.

  Bavarian et al., Theory of Computing 2020, arXiv 1612.01041:
  none does better for every pair of laws.
  """
  tv = law.tv(p, q)
  return (1 - tv) / (1 + tv)


def _agreement(p: Array, q: Array, weight: Array) -> Array:
  """sum_j 1 / sum_i (max(p_i / p_j, q_i / q_j) + weight p_i / p_j), j over tokens with p_j q_j > 0.

  Both sides of each quotient are multiplied by p_j q_j, so that no law is divided by.
  """
  both = p * q
  total = (jnp.maximum(p[None, :] * q[:, None], q[None, :] * p[:, None]).sum(-1)
           + weight * q * p.sum())
  return jnp.where(both > 0, both / jnp.where(both > 0, total, 1), 0).sum()
