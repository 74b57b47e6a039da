"""The only place where random keys are derived.

    key --row id--> row --stream--> stream --round or position--> one use

A row's keys depend on the seed and its row id alone, never on the batch size or the slot. There are
three streams a row:

  DRAFT     keyed by round: the draws of the drafter.
  VERIFY    keyed by round: the coins and the extra token of a rule.
  POSITION  keyed by absolute position: the noise field that drafter and target share under a
            coupled rule, and that plain decoding reads too.

Coins must not be keyed by position: block-level rules let later drafted tokens decide about earlier
ones, so the coin of a discarded position has already been looked at when the next round comes.

Everything here uses `fold_in`; a key that comes out is consumed by `split` or by one draw (but for
the keys of several nodes at a depth, see `node`).
(`split(k, n)[i] == fold_in(k, i)`, so both on one key would give the same bits twice.)
"""

import numbers

import jax
import jax.numpy as jnp

from specjax.types import Array, Error

_DRAFT, _VERIFY, _POSITION = 0, 1, 2


def typed(keys: Array) -> Array:
  """key[...] from itself, or from the raw words that `jax.random.PRNGKey` still makes.

  Raises:
    Error: these are no keys.
  """
  if jnp.issubdtype(keys.dtype, jax.dtypes.prng_key):
    return keys
  try:
    return jax.random.wrap_key_data(keys)
  except (TypeError, ValueError):
    raise Error(
        "A key comes from keys.from_seed or jax.random.key, got "
        f"{keys.dtype}{keys.shape}.") from None


def _stream(key: Array, rows: Array, stream: int) -> Array:
  """The keys key[B] of one stream for the rows int32[B].

  Raises:
    Error: `key` is not one key.
  """
  key = typed(key)
  if key.ndim:
    raise Error(f"The key of a generation is one key, got {key.dtype}{key.shape}.")
  return jax.vmap(lambda row: jax.random.fold_in(jax.random.fold_in(key, row), stream))(rows)


def _fold_each(keys: Array, indices: Array) -> Array:
  """key[B] and int32[B, K] -> key[B, K]."""
  return jax.vmap(jax.vmap(jax.random.fold_in, (None, 0)))(keys, indices)


def from_seed(seed: int) -> Array:
  """The key of a run, in which all bits of a seed in [0, 2^63) count.

  While 64-bit types are off, `jax.random.key` drops the upper half of a seed in silence.

  Raises:
    Error: `seed` is not an integer in that range.
  """
  if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or not 0 <= seed < 2**63:
    raise Error(f"A seed is an integer from 0 to 2^63 - 1, got {seed!r}.")
  with jax.enable_x64(True):
    return jax.random.key(seed)


def draft(key: Array, rows: Array, round_: Array, depth: int) -> Array:
  """key[B, depth]: one key for each depth of the draft in this round."""
  fresh = _fold_each(_stream(key, rows, _DRAFT), jnp.broadcast_to(round_, (rows.shape[0], 1)))
  return _fold_each(fresh[:, 0], jnp.broadcast_to(jnp.arange(depth), (rows.shape[0], depth)))


def verify(key: Array, rows: Array, round_: Array) -> Array:
  """key[B]: the key of a rule that flips coins, fresh in every round."""
  return _fold_each(
      _stream(key, rows, _VERIFY), jnp.broadcast_to(round_, (rows.shape[0], 1))
  )[:, 0]


def positions(key: Array, rows: Array, start: Array, count: int) -> Array:
  """key[B, count]: the keys of the absolute positions start[b] .. start[b] + count - 1."""
  return _fold_each(_stream(key, rows, _POSITION), start[:, None] + jnp.arange(count)[None, :])


def node(key: Array, index: Array | int) -> Array:
  """The key of one of several nodes of a depth, from the key that a drafter got for that depth.

  Nodes are counted from 0 over the whole depth, not for each parent, or cousins would be drawn
  alike. Node 0 is drawn with the key itself, as a chain is: under a coupled rule it reads the field
  that the target reads.
  """
  index = jnp.asarray(index, jnp.int32)
  # The position's key is drawn from too. Its bits come from counters up to twice the vocabulary's
  # size, the keys of further nodes from counters just below 2^32: none is used twice.
  return jnp.where(index == 0, key, jax.random.fold_in(key, -index))


def path(key: Array, index: Array | int) -> Array:
  """The key of one of several drafted paths at a position, from the position's own key.

  `list_gumbel` judges with independent noise for each path, and its drafter draws the token of path
  `index` with this key: the paths are the nodes of a depth, numbered alike at every depth.
  """
  return node(key, index)
