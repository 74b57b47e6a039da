"""A strict order of the tokens by p / q, and the draft's mass up to each token in it.

The greedy multi-path rule needs, for every token of the vocabulary, the probability that a draft
ranks at or below it. To know that is to know the order, so with the plain order it takes a sort of
the vocabulary. The order here can be summed without one. Tokens compare by

    the cell of log(p / q), 1 / 16 wide,  then the id, the first 32 ids counting as one,
    then p / q,  then the id,

which is p / q ascending with ties by id for up to 32 tokens, and for more of them up to the width
of a cell. The rule is lossless under any strict order, so long as the choice of a path and the sums
use the same one; hence both are here.
"""

import jax.numpy as jnp
from jax import lax

from specjax.types import Array

_WIDTH = 1 / 16  # a power of two: the cell of a token is then the same bits wherever it is computed
_CELLS = 128  # ratios beyond exp(4) share the cell at their end
_EXACT = 32  # so many ids, the first, are compared by p / q within a cell
_STRIPE = 512  # at most so many tokens of a stripe of ids are counted one after the other


def keys(log_ratio: Array, tokens: Array) -> tuple[Array, ...]:
  """The four keys of tokens int32[...] with log(p / q) float[...], most significant first."""
  half = _CELLS // 2
  cell = jnp.clip(jnp.floor(log_ratio / _WIDTH), -half, half - 1).astype(jnp.int32) + half
  return cell, jnp.maximum(tokens, _EXACT - 1), log_ratio, tokens


def highest(log_ratio: Array, tokens: Array, among: Array) -> Array:
  """bool[N]: the entries, among the marked ones, that hold the token of the highest rank."""
  for key in keys(log_ratio, tokens):
    low = jnp.iinfo(key.dtype).min if jnp.issubdtype(key.dtype, jnp.integer) else -jnp.inf
    among = among & (key == jnp.where(among, key, low).max())
  return among


def mass_up_to(log_ratio: Array, q: Array) -> Array:
  """float[V]: the mass under q float[V] of the tokens that rank at or below each token.

  Cells below, then earlier ids in the same cell: O(V) operations. The ids are cut into stripes, and
  all stripes are counted side by side, one token of each at a time.
  """
  vocab = q.shape[0]
  stripes = -(-vocab // _STRIPE)
  length = -(-vocab // stripes)
  def cut(x):
    return jnp.pad(x, (0, stripes * length - vocab)).reshape(stripes, length)

  cell = cut(keys(log_ratio, jnp.arange(vocab, dtype=jnp.int32))[0])
  stripe = jnp.arange(stripes, dtype=jnp.int32)

  def count(mass_of, token):
    own_cell, own_mass = token
    up_to = mass_of[stripe, own_cell] + own_mass
    return mass_of.at[stripe, own_cell].set(up_to), up_to

  empty = jnp.zeros((stripes, _CELLS), q.dtype)
  mass_of, in_stripe = lax.scan(count, empty, (cell.T, cut(q).T))
  in_cell = _exclusive_cumsum(mass_of)[stripe[:, None], cell] + in_stripe.T
  in_cell = in_cell.reshape(-1)[:vocab]
  in_cell = in_cell.at[:_EXACT].set(_mass_by_pairs(log_ratio[:_EXACT], q[:_EXACT]))
  return _exclusive_cumsum(mass_of.sum(0))[cell.reshape(-1)[:vocab]] + in_cell


def _mass_by_pairs(log_ratio: Array, q: Array) -> Array:
  """float[n]: the mass of the first n tokens up to each of them, within its own cell."""
  tokens = jnp.arange(q.shape[0], dtype=jnp.int32)
  cell = keys(log_ratio, tokens)[0]
  lower = (log_ratio[None, :] < log_ratio[:, None]) | (
      (log_ratio[None, :] == log_ratio[:, None]) & (tokens[None, :] <= tokens[:, None]))
  return jnp.where((cell[None, :] == cell[:, None]) & lower, q[None, :], 0).sum(-1)


def _exclusive_cumsum(x: Array) -> Array:
  """Sums over the earlier entries of the first axis; the first is exactly 0."""
  return jnp.concatenate([jnp.zeros_like(x[:1]), jnp.cumsum(x[:-1], 0)])
