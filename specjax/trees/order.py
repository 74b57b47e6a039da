"""Who stands where in a drafted tree: orders, paths and siblings.

All functions take one row's `parents` int32[N] (ROOT or an earlier index), and all can be mapped.
"""

import jax.numpy as jnp
from jax import lax

from specjax.types import Array, PAD, ROOT


def post_order(parents: Array) -> Array:
  """int32[N]: the place of each node when children come before parents, first branch first."""
  nodes = jnp.arange(parents.shape[0], dtype=jnp.int32)

  def add_size(sizes, node):
    return sizes.at[parents[node] + 1].add(sizes[node + 1]), None

  # Row n + 1 holds node n and row 0 the root, so that a parent of ROOT needs no special case.
  sizes = jnp.ones(parents.shape[0] + 1, jnp.int32)
  sizes, _ = lax.scan(add_size, sizes, nodes, reverse=True)

  def place(free, node):
    start = free[parents[node] + 1]  # the first place not yet taken below this parent
    free = free.at[parents[node] + 1].add(sizes[node + 1]).at[node + 1].set(start)
    return free, start + sizes[node + 1] - 1

  return lax.scan(place, jnp.zeros_like(sizes), nodes)[1]


def path_to(parents: Array, node: Array, depth: int) -> Array:
  """int32[depth]: the nodes from the root down to `node`, PAD after them."""
  above = jnp.append(jnp.full(1, ROOT, parents.dtype), parents)  # of row 0, the root, there is none

  def climb(at, _):
    return above[at + 1], at

  _, upward = lax.scan(climb, node, None, length=depth)
  length = (upward != ROOT).sum(dtype=jnp.int32)
  place = jnp.arange(depth, dtype=jnp.int32)
  return jnp.where(place < length, upward[length - 1 - place], PAD)


def contains(path: Array, nodes: Array) -> Array:
  """bool[K]: which of the nodes int32[K] stand in path int32[D]."""
  return (path[None, :] == nodes[:, None]).any(-1)


def any_earlier_sibling(parents: Array, mark: Array) -> Array:
  """bool[N]: whether some earlier sibling of each node carries the mark bool[N]."""
  return (earlier_siblings(parents) & mark[None, :]).any(-1)


def earlier_siblings(parents: Array) -> Array:
  """bool[N, N]: [n, m] is true iff m is a sibling of n that stands before it."""
  index = jnp.arange(parents.shape[0], dtype=jnp.int32)
  return (parents[:, None] == parents[None, :]) & (index[None, :] < index[:, None])


def branches(parents: Array) -> Array:
  """int32[N]: which child of the root, counted from 0, each node descends from."""
  def inherit(above, node):
    row, parent, ordinal = node
    own = jnp.where(parent == ROOT, ordinal, above[parent + 1])
    return above.at[row].set(own), own

  rows = jnp.arange(1, parents.shape[0] + 1, dtype=jnp.int32)  # row n + 1 holds node n
  ordinals = jnp.cumsum(parents == ROOT, dtype=jnp.int32) - 1
  above = jnp.zeros(parents.shape[0] + 1, jnp.int32)
  return lax.scan(inherit, above, (rows, parents, ordinals))[1]


def sibling_ranks(parents: Array) -> Array:
  """int32[N]: how many siblings stand before each node."""
  return earlier_siblings(parents).sum(-1, dtype=jnp.int32)
