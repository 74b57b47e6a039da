"""Records that every part of specjax shares.

Two kinds of record live here. *Data* (`Draft`, `Decision`, `Verdict`, ...) are NamedTuples of
arrays. *Methods* (`Target`, `Drafter`) are frozen dataclasses of pure functions, registered as
pytrees: each function is a `jax.tree_util.Partial`, so the numbers it closes over are arrays that
travel through `jit` as arguments, and only the fields marked `static` are part of the cache key.

In the shape descriptions `B` is the batch, `V` the vocabulary, `N` the drafted nodes (a chain of
length gamma has N = gamma), `D` the depth of the draft, `T` the tokens of one pass.
"""

import dataclasses
from typing import Any, Callable, NamedTuple

import jax

PAD = -1  # fills token arrays beyond their length; never a token
ROOT = -1  # the parent of a node that hangs directly below the committed text

Array = jax.Array
PyTree = Any


def static():
  """A dataclass field that is part of the jit cache key: a shape, a flag, never an array."""
  return dataclasses.field(metadata=dict(static=True))


def method(cls):
  """Class decorator: a frozen dataclass of pure functions that is also a pytree."""
  return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


class Draft(NamedTuple):
  """A drafted token tree of one row; parents come before children, siblings in drawing order.

  `log_q[n]` is the very law that node n was drawn from, given its earlier siblings: siblings drawn
  without replacement record the renormalised law without the earlier ones. `None` states that every
  node was chosen deterministically (a point mass), as prompt lookup does.
  A node below an invalid node is itself invalid.
  """

  tokens: Array  # int32[N]
  parents: Array  # int32[N], ROOT or the index of an earlier node
  log_q: Array | None  # float[N, V] or None
  valid: Array  # bool[N]


class Decision(NamedTuple):
  """What a verification rule decides, before any coin is flipped.

  Row 0 of `log_next` is the law of the extra token if the walk stops at the root, row n + 1 if it
  stops at node n. Rows are normalised log-probabilities.
  """

  accept: Array  # float[N]: P(node is accepted | node is tested)
  log_next: Array  # float[N + 1, V]


class Verdict(NamedTuple):
  """The outcome of one round for one row.

  `tokens[:count]` are the accepted tokens followed by the extra token, PAD after them. `tested`
  marks the nodes that were judged with every ancestor accepted; alpha is accepted / tested.
  """

  tokens: Array  # int32[D + 1]
  count: Array  # int32[]
  path: Array  # int32[D]: indices of the accepted nodes from the root down, PAD after them
  tested: Array  # bool[N]
  accepted: Array  # bool[N]


class Output(NamedTuple):
  """What one pass of a model returns."""

  logits: Array  # float[B, T, V]
  features: Array | None  # float[B, T, C, H]: hidden states of the C captured layers
  cache: PyTree


@method
class Target:
  """A language model as pure functions over an explicit cache.

  init(params, batch, capacity) -> cache
    An empty cache for `batch` rows of `capacity` tokens (both static ints).
  forward(params, cache, tokens int32[B, T], lengths int32[B], depths int32[B, T] | None,
          mask bool[B, T, T] | None) -> Output
    Scores T new tokens a row, of which the first stands at position `lengths[b]`, and writes their
    entries at slots `lengths[b] .. lengths[b] + T - 1`. Token t stands at position
    `lengths[b] + depths[b, t]` and sees the cached prefix and the new tokens where `mask[b, t]` is
    true. None and None is a chain: depths 0..T-1 and a causal mask. The caller guarantees
    `lengths + T <= capacity` (JAX would clamp the write silently).
  commit(cache, lengths int32[B], path int32[B, D]) -> cache
    Keeps an accepted tree path: the entry at slot `lengths[b] + 1 + path[b, d]` moves to slot
    `lengths[b] + 1 + d` (PAD entries of `path` move nothing). Not called for chains.
  """

  init: Callable
  forward: Callable
  commit: Callable
  vocab_size: int = static()
  max_length: int | None = static()  # the context limit in tokens; None if there is none


class Params(NamedTuple):
  """Parameters of a speculative decoder; plain decoding reads `target` alone."""

  target: PyTree
  drafter: PyTree = None


class Context(NamedTuple):
  """What a drafter may look at when it drafts.

  `cache` is the target's and holds the first `lengths - 1` tokens: the last one is scored together
  with the draft. `law(logits float[B, V], drafted int32[B, i])` is the only way from the drafter's
  logits, after `i` drafted tokens, to the law that it draws from.
  """

  tokens: Array  # int32[B, S]: the committed text, PAD after it
  lengths: Array  # int32[B]: committed tokens, at least 1
  cache: PyTree
  law: Callable[[Array, Array], Array]


class Proposal(NamedTuple):
  """A drafter's answer: the draft, its own new state, and the target's cache as it left it."""

  draft: Draft  # every field with a leading batch axis
  state: PyTree
  cache: PyTree


@method
class Drafter:
  """A drafter as pure functions.

  init(params: Params, tokens int32[B, S], lengths int32[B]) -> state
    Reads the prompts. `S` is the capacity of the text buffer.
  propose(keys key[B, D], params: Params, state, context: Context) -> Proposal
    Drafts `nodes` tokens. The token at depth d of row b is drawn with `keys[b, d]` by
    `logits.sample`, so that a coupled rule can hand over the keys of absolute positions.
  observe(params: Params, state, verdict: Verdict, features, lengths int32[B]) -> state
    Sees the outcome of the round (every field with a leading batch axis), the target's features of
    the scored window float[B, N + 1, C, H] or None, and the committed lengths after it.
  """

  init: Callable
  propose: Callable
  observe: Callable
  nodes: int = static()
  depth: int = static()
  abstains: bool = static()  # may return no valid node; the target then scores one row only
