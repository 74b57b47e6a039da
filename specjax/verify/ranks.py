"""A strict order of the tokens by p / q, and the draft's mass up to each token in it.

The greedy multi-path rule needs, for every token of the vocabulary, the probability that a draft
ranks at or below it. To know that is to know the order, so with the plain order it takes a sort of
the vocabulary. The order here can be summed without one. Tokens compare by

    the cell of log(p / q), 1 / 16 wide,  then the block of 32 token ids,  then p / q,  then the id,

which is p / q ascending with ties by id for up to 32 tokens, and for more of them up to the width of
a cell. The rule is lossless under any strict order, so long as the choice of a path and the sums use
the same one; hence both are here.
"""

import jax.numpy as jnp
from jax import lax

from specjax.types import Array

_WIDTH = 1 / 16  # a power of two: the cell of a token is then the same bits wherever it is computed
_CELLS = 128  # ratios beyond exp(4) share the cell at their end
_BLOCK = 32


def keys(log_ratio: Array, tokens: Array) -> tuple[Array, ...]:
  """The four keys of tokens int32[...] with log(p / q) float[...], most significant first."""
  half = _CELLS // 2
  cell = jnp.clip(jnp.floor(log_ratio / _WIDTH), -half, half - 1).astype(jnp.int32) + half
  return cell, tokens // _BLOCK, log_ratio, tokens


def highest(log_ratio: Array, tokens: Array, among: Array) -> Array:
  """bool[N]: the entries, among the marked ones, that hold the token of the highest rank."""
  for key in keys(log_ratio, tokens):
    low = jnp.iinfo(key.dtype).min if jnp.issubdtype(key.dtype, jnp.integer) else -jnp.inf
    among = among & (key == jnp.where(among, key, low).max())
  return among


def mass_up_to(log_ratio: Array, q: Array) -> Array:
  """float[V]: the mass under q float[V] of the tokens that rank at or below each token.

  Cells below, then blocks before this one in the same cell, then the rest of the block by pairs:
  O(V (block + cells / block)) operations.
  """
  vocab, blocks = q.shape[0], -(-q.shape[0] // _BLOCK)
  columns = lambda x: jnp.pad(x, (0, blocks * _BLOCK - vocab)).reshape(blocks, _BLOCK).T
  mass, ratio = columns(q), columns(log_ratio)
  ids = jnp.arange(blocks * _BLOCK, dtype=jnp.int32).reshape(blocks, _BLOCK).T
  cell, block = keys(ratio, ids)[:2]

  table = jnp.zeros((blocks, _CELLS), q.dtype).at[block, cell].add(mass)
  before = _exclusive_cumsum(table.sum(0))[cell] + _exclusive_cumsum(table)[block, cell]

  def add(place, total):  # a loop over the tokens of a block: XLA is slow at the reduction on CPU
    one = lambda x: x[place][None, :]
    not_above = (one(ratio) < ratio) | ((one(ratio) == ratio) & (one(ids) <= ids))
    return total + jnp.where((one(cell) == cell) & not_above, one(mass), 0)

  return lax.fori_loop(0, _BLOCK, add, before).T.reshape(-1)[:vocab]


def _exclusive_cumsum(x: Array) -> Array:
  """Sums over the earlier entries of the first axis; the first is exactly 0."""
  return jnp.concatenate([jnp.zeros_like(x[:1]), jnp.cumsum(x[:-1], 0)])
