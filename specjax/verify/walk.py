"""Where a walk over a drafted tree stops: once every coin is known, or with what probability.

All functions take one row's `parents` int32[N] (ROOT or an earlier index), and all can be mapped.
"""

import jax.numpy as jnp
from jax import lax

from specjax.trees import order
from specjax.types import Array, ROOT


def last_top_down(parents: Array, heads: Array) -> Array:
  """The node int32[] where a top-down walk stops, ROOT if its first tests all fail.

  Parents come first, so one pass in index order meets the children of the current node exactly when
  they are due: a node is tested iff its parent is where the walk stands.
  """
  def test(current, coin):
    node, parent, head = coin
    return jnp.where(head & (parent == current), node, current), None

  nodes = jnp.arange(parents.shape[0], dtype=jnp.int32)
  return lax.scan(test, jnp.int32(ROOT), (nodes, parents, heads))[0]


def first_bottom_up(parents: Array, heads: Array) -> Array:
  """The first node int32[] in post-order whose coin shows heads, ROOT if there is none."""
  if parents.shape[0] == 0:
    return jnp.int32(ROOT)
  last = parents.shape[0]
  places = jnp.where(heads, order.post_order(parents), last)
  return jnp.where(heads.any(), jnp.argmin(places), ROOT).astype(jnp.int32)


def stops_top_down(parents: Array, accept: Array) -> Array:
  """float[N + 1]: the probability that a top-down walk stops at each row."""
  def test(standing, node):
    tested = standing[parents[node] + 1]
    standing = standing.at[node + 1].set(tested * accept[node])
    return standing.at[parents[node] + 1].set(tested * (1 - accept[node])), None

  standing = jnp.zeros(accept.shape[0] + 1, accept.dtype).at[0].set(1)
  return lax.scan(test, standing, jnp.arange(accept.shape[0], dtype=jnp.int32))[0]


def stops_bottom_up(parents: Array, accept: Array) -> Array:
  """float[N + 1]: the probability that a bottom-up walk stops at each row."""
  places = order.post_order(parents)
  in_order = jnp.zeros_like(accept).at[places].set(accept)
  undecided = jnp.cumprod(jnp.append(jnp.ones(1, accept.dtype), 1 - in_order))
  stops = (undecided[:-1] * in_order)[places]
  return jnp.concatenate([undecided[-1:], stops])
