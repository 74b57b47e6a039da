"""What a drafted tree looks like to the target: depths and ancestor masks, from a parents array."""

import jax.numpy as jnp
from jax import lax

from specjax.types import Array, ROOT


def ancestors(parents: Array) -> Array:
  """bool[N, N]: [n, m] is true iff m is n itself or one of its ancestors (one row's int32[N])."""
  nodes = jnp.arange(parents.shape[0], dtype=jnp.int32)

  def inherit(mask, node):
    # ROOT reads an arbitrary row, which is then ignored.
    above = jnp.where(parents[node] == ROOT, False, mask[parents[node]])
    return mask.at[node].set(above | (nodes == node)), None

  return lax.scan(inherit, jnp.zeros((nodes.size, nodes.size), bool), nodes)[0]


def depths(parents: Array) -> Array:
  """int32[N]: 0 for the children of the root, 1 for theirs, and so on."""
  return ancestors(parents).sum(-1, dtype=jnp.int32) - 1


def window(parents: Array) -> tuple[Array, Array]:
  """Depths int32[N + 1] and mask bool[N + 1, N + 1] of the root followed by the N nodes."""
  above = ancestors(parents)
  mask = jnp.pad(above, ((1, 0), (1, 0))).at[:, 0].set(True)
  return jnp.pad(above.sum(-1, dtype=jnp.int32), (1, 0)), mask
