"""Records that every part of specjax shares.

Two kinds of record live here. *Data* (`Draft`, `Decision`, `Verdict`, ...) are NamedTuples of
arrays. *Methods* (`Target`, `Drafter`) are frozen dataclasses of pure functions, registered as
pytrees: each function is a `jax.tree_util.Partial`, so the numbers it closes over are arrays that
travel through `jit` as arguments, and only the fields marked `static` are part of the cache key.
What each function gets and gives is said by its Protocol (`ForwardFn`, `ProposeFn`, ...).

In the shape descriptions `B` is the batch, `V` the vocabulary, `N` the drafted nodes (a chain of
length gamma has N = gamma), `D` the depth of the draft, `T` the tokens of one pass.
"""

import dataclasses
from typing import Any, Callable, NamedTuple, Protocol

import jax
from jax.tree_util import Partial

PAD = -1  # fills token arrays beyond their length; never a token
ROOT = -1  # the parent of a node that hangs directly below the committed text

# The ways of drawing the nodes of a draft. A drafter declares one, a rule those that it serves.
CHAIN = "chain"  # one path, every token from the drafter's law
INDEPENDENT = "independent"  # a tree whose siblings are independent draws from one law
WITHOUT_REPLACEMENT = "without replacement"  # a sibling never repeats an earlier one
PATHS = "paths"  # several chains that part at the root, independent of each other
PATH_NOISE = "noise of each path"  # the same, path k drawn with `keys.path(key, k)`
DETERMINISTIC = "deterministic"  # chain or tree, chosen by the text alone: point masses
SIBLINGS = (CHAIN, INDEPENDENT, WITHOUT_REPLACEMENT, PATHS, PATH_NOISE, DETERMINISTIC)

Array = jax.Array
PyTree = Any


class Error(ValueError):
  """What the user gave cannot be used; the message says what, where and what would do.

  Programs print it as one paragraph. Any other ValueError is a bug and keeps its traceback.
  """


@dataclasses.dataclass(frozen=True, init=False)
class Static:
  """A function with its first, static arguments; equal ones share a compilation.

  `Partial(Static(f, gamma), threshold)` calls `f(gamma, threshold, ...)`: gamma is part of the jit
  cache key, threshold an array that travels as an argument.
  """

  f: Callable
  args: tuple

  def __init__(self, f: Callable, *args):
    object.__setattr__(self, "f", f)
    object.__setattr__(self, "args", args)

  def __call__(self, *args, **kwargs):
    return self.f(*self.args, *args, **kwargs)


def static(default=dataclasses.MISSING):
  """A dataclass field that is part of the jit cache key: a shape, a flag, never an array."""
  return dataclasses.field(metadata=dict(static=True), default=default)


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


class InitFn(Protocol):
  """The empty cache of a target."""

  def __call__(self, params: PyTree, batch: int, capacity: int) -> PyTree:
    """The cache of `batch` rows with room for `capacity` tokens each (both static)."""


class ForwardFn(Protocol):
  """One pass of a target."""

  def __call__(
      self, params: PyTree, cache: PyTree, tokens: Array, lengths: Array,
      depths: Array | None = None, mask: Array | None = None) -> Output:
    """Scores T new tokens a row behind the text, and writes their cache entries.

    Without `depths` and `mask` the tokens are a chain: the first stands at position `lengths[b]`,
    each sees all before it. A tree grows over several passes: its nodes take the W slots behind the
    text, and the T new ones are the last of those so far, slots `lengths[b] + W - T` to
    `lengths[b] + W - 1`. The caller guarantees `lengths + W <= capacity`; JAX would clamp the write
    silently.

    Args:
      params: of the target.
      cache: holds the text, and the first W - T nodes.
      tokens: int32[B, T].
      lengths: int32[B], the tokens of the text.
      depths: int32[B, T]; token t stands at position `lengths[b] + depths[b, t]`. 0 .. T - 1 if not
        given.
      mask: bool[B, T, W], W >= T; token t sees the text, and slot w behind it where `mask[b, t, w]`
        is true (itself included). Causal with W = T if not given.

    Raises:
      Error: a mask of another shape, more tokens than the cache has slots.
    """


class CommitFn(Protocol):
  """What is kept of a scored tree."""

  def __call__(self, cache: PyTree, lengths: Array, path: Array) -> PyTree:
    """Moves an accepted path together; not called for chains, whose path is in place already.

    Args:
      cache: holds the root's entry at slot `lengths[b]`, node n's at `lengths[b] + 1 + n`.
      lengths: int32[B], the tokens before the root.
      path: int32[B, D]; the entry of node `path[b, d]` moves to slot `lengths[b] + 1 + d`. PAD
        moves nothing.
    """


@method
class Target:
  """A language model as pure functions over an explicit cache."""

  init: InitFn
  forward: ForwardFn
  commit: CommitFn
  vocab_size: int = static()
  max_length: int | None = static()  # the context limit in tokens; None if there is none
  captures: tuple[int, ...] = static(())  # the hidden states that Output.features holds, by layer


class Params(NamedTuple):
  """Parameters of a speculative decoder; plain decoding reads `target` alone."""

  target: PyTree
  drafter: PyTree = None


class Context(NamedTuple):
  """The text and what else a drafter may look at.

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


class StateFn(Protocol):
  """The state of a drafter that has read nothing yet."""

  def __call__(self, params: Params, batch: int, capacity: int) -> PyTree:
    """The state of `batch` rows whose text has room for `capacity` tokens (both static)."""


class ReadFn(Protocol):
  """Text that the target has read, with the hidden states that the drafter asked for."""

  def __call__(
      self, params: Params, state: PyTree, tokens: Array, features: Array | None, start: Array,
      count: Array) -> PyTree:
    """Reads T tokens a row; the prompt comes in such chunks, right after the target has read each.

    Args:
      params: of target and drafter.
      state: of the drafter, which has read the text before `start`.
      tokens: int32[B, T + 1]; the target has read the first T, token t at position `start[b] + t`.
        Each one's successor is known, as EAGLE pairs it with the features.
      features: float[B, T, C, H] of the first T tokens, C = len(captures); None without captures.
      start: int32[B].
      count: int32[B] in 0 .. T; what stands behind the first `count[b]` tokens is no text. A row of
        count 0 keeps its state, but for what a later call overwrites before it is looked at.
    """


class ProposeFn(Protocol):
  """The draft of a round."""

  def __call__(self, keys: Array, params: Params, state: PyTree, context: Context) -> Proposal:
    """Drafts `Drafter.nodes` nodes a row.

    The token at depth d of row b is drawn with `keys[b, d]` by `logits.sample`, so that a coupled
    rule can hand over the keys of absolute positions; the nodes that share a depth draw with
    `keys.node` of it. No other randomness may enter.

    Args:
      keys: key[B, D]. Consumed.
      params: of target and drafter.
      state: of the drafter.
      context: the text.
    """


class ObserveFn(Protocol):
  """The outcome of a round."""

  def __call__(
      self, params: Params, state: PyTree, verdict: Verdict, features: Array | None,
      context: Context) -> PyTree:
    """Learns what was kept; `trees.accepted.read_of` turns it into the arguments of a `ReadFn`.

    Args:
      params: of target and drafter.
      state: as `propose` left it.
      verdict: of the round, every field with a leading batch axis. A count of 0, that of a finished
        row, changes nothing.
      features: float[B, N + 1, C, H] of the scored window: the root, then the nodes; or None.
      context: the text after the round.
    """


def _no_state(params: Params, batch: int, capacity: int) -> tuple:
  del params, batch, capacity
  return ()


def _as_it_was(params: Params, state: PyTree, *what) -> PyTree:
  del params, what
  return state


@method
class Drafter:
  """A drafter as pure functions. One that remembers nothing between rounds only proposes."""

  propose: ProposeFn
  nodes: int = static()  # N
  depth: int = static()  # D: tokens of the longest path; a chain has N = D
  abstains: bool = static()  # may return no valid node; the target then scores one row only
  siblings: str = static()  # how nodes are drawn, one of SIBLINGS; `Rule.serves` is its counterpart
  captures: tuple[int, ...] = static(())  # the hidden states of the target that it reads
  init: StateFn = Partial(_no_state)
  read: ReadFn = Partial(_as_it_was)
  observe: ObserveFn = Partial(_as_it_was)
