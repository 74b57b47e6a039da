"""What a drafted tree looks like to the target: depths and ancestor masks, from a parents array.

All functions take one row's `parents` int32[N] (ROOT or an earlier index). A *window* is the root
followed by the N nodes: the tokens that the target scores in one pass.
"""

import jax.numpy as jnp
from jax import lax

from specjax.types import Array, ROOT


def window_mask(parents: Array) -> Array:
  """bool[N + 1, N + 1]: [i, j] is true iff j is i itself or one of its ancestors; 0 is the root."""
  places = jnp.arange(parents.shape[0] + 1, dtype=jnp.int32)
  above = jnp.append(jnp.full(1, ROOT, jnp.int32), parents) + 1  # the parent's place in the window

  def inherit(mask, place):
    return mask.at[place].set(mask[above[place]] | (places == place)), None

  root_only = jnp.zeros((places.size, places.size), bool).at[0, 0].set(True)
  return lax.scan(inherit, root_only, places[1:])[0]


def window_depths(parents: Array) -> Array:
  """int32[N + 1]: 0 for the root, 1 for its children, and so on."""
  return window_mask(parents).sum(-1, dtype=jnp.int32) - 1
