"""Every draft that a way of drafting can produce, with its probability.

A `Scheme` is a tree shape and a way to draw siblings, one of `types` or a refinement that matters
to proofs alone:

  INDEPENDENT          every node from the drafter's law after its parent (chains; SpecTr; K paths).
  WITHOUT_REPLACEMENT  a node never repeats an earlier sibling and records the law without them
                       (recursive rejection, Sequoia). Where nothing is left the node is invalid.
  JOINED               drawn like INDEPENDENT; of nodes with equal text the first takes all
                       children, the later ones remain as further trials without any.
  MERGED               the same, but the later ones become invalid, and siblings record the law
                       without the earlier ones (K paths as one tree).
  DETERMINISTIC        chosen by any function of the text; point masses (prompt lookup, top-k
                       trees). A rule must keep the law for each single draft, so none is averaged
                       over.
  SHARED_NOISE         drawn with the noise of the target's positions, for `gumbel`.
  PATH_NOISE           separate chains, each with noise of its own at every position, for
                       `list_gumbel`. These two are not enumerated: see `coupled`.
"""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from specjax.exact import prefixes
from specjax.trees import chains, topology
from specjax.types import (
    Array, CHAIN, DETERMINISTIC, Draft, INDEPENDENT, PAD, PATHS, ROOT, WITHOUT_REPLACEMENT)

JOINED = "joined"
MERGED = "merged"
SHARED_NOISE = "shared noise"


class Scheme(NamedTuple):
  """A way of drafting; hashable, so that it can be a static argument of a jit."""

  name: str
  parents: tuple[int, ...]
  siblings: str = INDEPENDENT
  invalid: tuple[int, ...] = ()  # nodes that are never drafted, with everything below them
  stop_below: float | None = None  # drawing ends on the way down as in `chains.continues`

  @property
  def depths(self) -> tuple[int, ...]:
    """The depth of every node, 1 for the children of the root."""
    depths = []
    for parent in self.parents:
      depths.append(1 if parent == ROOT else depths[parent] + 1)
    return tuple(depths)

  @property
  def depth(self) -> int:
    return max(self.depths, default=0)

  @property
  def drafted(self) -> tuple[bool, ...]:
    """Which nodes are not excluded by `invalid`."""
    drafted = []
    for node, parent in enumerate(self.parents):
      drafted.append(node not in self.invalid and (parent == ROOT or drafted[parent]))
    return tuple(drafted)

  @property
  def is_chain(self) -> bool:
    return self.parents == topology.chain(len(self.parents))

  @property
  def kind(self) -> str:
    """The `Drafter.siblings` of a drafter that drafts like this. A chain has none."""
    if self.is_chain:
      return CHAIN
    if self.siblings == MERGED:
      return WITHOUT_REPLACEMENT
    if self.siblings in (JOINED, SHARED_NOISE):
      return INDEPENDENT
    separate = all(parent in (ROOT, node - 1) for node, parent in enumerate(self.parents))
    return PATHS if separate and self.siblings == INDEPENDENT else self.siblings


class Drafts(NamedTuple):
  """All A = V ** N drafts of one system, some of them of probability zero."""

  draft: Draft  # every field with a leading axis A
  weight: Array  # float[A]: the probability of each; 1 for each if the scheme is DETERMINISTIC
  prefixes: Array  # int32[A, N + 1]: the text at the root and at each node, see `prefixes`


def chain(gamma: int) -> Scheme:
  """A single path of gamma tokens."""
  return Scheme(f"chain {gamma}", topology.chain(gamma))


def paths(number: int, gamma: int, siblings: str = INDEPENDENT) -> Scheme:
  """`number` paths of gamma tokens, separate from the root on."""
  return Scheme(f"{number} paths of {gamma}, {siblings}", topology.paths(number, gamma), siblings)


def tree(branching: tuple[int, ...], siblings: str) -> Scheme:
  """Every node at depth d has branching[d] children."""
  shape = "x".join(map(str, branching))
  return Scheme(f"{shape} tree, {siblings}", topology.branching(branching), siblings)


def enumerate_drafts(scheme: Scheme, log_q: Array) -> Drafts:
  """All drafts of one system.

  Rows of `log_q` that belong to invalid nodes are NaN, for no rule may look at them.

  Args:
    scheme: static.
    log_q: float[M, V], the drafter's law after every prefix of at most scheme.depth - 1 tokens (a
      longer table will do).
  """
  # The barrier keeps XLA from folding everything that follows from these constants at compile time.
  shape = jax.lax.optimization_barrier(jax.tree.map(jnp.asarray, _shape(scheme, log_q.shape[1])))
  q = jnp.exp(log_q)[jnp.take_along_axis(shape.texts, shape.parents + 1, axis=1)]
  law, valid = q, shape.kept
  if scheme.siblings in (WITHOUT_REPLACEMENT, MERGED):
    law, exhausted = _without(q, shape.taken)
    if scheme.siblings == WITHOUT_REPLACEMENT:
      valid = _valid_to_the_root(valid & ~exhausted, scheme.parents)
  if scheme.stop_below is not None:
    valid = _valid_to_the_root(valid & _continues(scheme, q, shape.words), scheme.parents)
  drawn_from = q if scheme.siblings == MERGED else law
  drawn = jnp.take_along_axis(drawn_from, shape.words[..., None], axis=-1)[..., 0]
  if scheme.siblings != MERGED:  # of drafts that differ in undrawn nodes only, one counts
    drawn = jnp.where(valid, drawn, (shape.words == 0).astype(drawn.dtype))
  fixed = scheme.siblings == DETERMINISTIC
  draft = Draft(
      tokens=jnp.where(valid, shape.words, PAD),
      parents=shape.parents,
      log_q=None if fixed else jnp.where(valid[..., None], jnp.log(law), jnp.nan),
      valid=valid)
  return Drafts(draft, jnp.ones_like(drawn[:, 0]) if fixed else drawn.prod(1), shape.texts)


def groups(drafts: Drafts) -> Drafts:
  """The drafts of one system as [G, A / G, ...]: one group, or each alone if they have no law."""
  alone = drafts.draft.log_q is None
  return jax.tree.map(lambda x: x[:, None] if alone else x[None], drafts)


class _Shape(NamedTuple):
  """What does not depend on the laws: A words of N tokens and where their nodes hang."""

  words: np.ndarray  # int32[A, N]
  parents: np.ndarray  # int32[A, N]
  texts: np.ndarray  # int32[A, N + 1]
  kept: np.ndarray  # bool[A, N]: drafted, and not merged into an earlier node
  taken: np.ndarray  # bool[A, N, V]: the tokens of the earlier siblings of every node


@functools.lru_cache(maxsize=None)
def _shape(scheme: Scheme, vocab: int) -> _Shape:
  nodes = len(scheme.parents)
  words = np.array(list(itertools.product(range(vocab), repeat=nodes)), np.int32)
  parents = np.tile(np.array(scheme.parents, np.int32), (len(words), 1))
  texts = np.zeros((len(words), nodes + 1), np.int32)
  for node, parent in enumerate(scheme.parents):
    texts[:, node + 1] = prefixes.child(texts[:, parent + 1], words[:, node], vocab)
  kept = np.tile(np.array(scheme.drafted, bool), (len(words), 1))
  if scheme.siblings in (JOINED, MERGED):
    equal = texts[:, 1:, None] == texts[:, None, 1:]
    first = np.where(equal.any(-1), equal.argmax(-1), np.arange(nodes)).astype(np.int32)
    if scheme.siblings == MERGED:
      kept &= first == np.arange(nodes)
    parents = np.where(parents == ROOT, ROOT, np.take_along_axis(first, parents, axis=1))
  siblings = (parents[:, :, None] == parents[:, None, :]) & np.tri(nodes, k=-1, dtype=bool)
  tokens = (words[..., None] == np.arange(vocab)) & kept[..., None]
  taken = (siblings[..., None] & tokens[:, None]).any(2)
  return _Shape(words, parents, texts, kept, taken)


def _without(q: Array, taken: Array) -> tuple[Array, Array]:
  """The law q float[A, N, V] without the taken tokens, and bool[A, N]: nothing is left of it."""
  rest = jnp.where(taken, 0, q)
  left = rest.sum(-1, keepdims=True)
  return rest / jnp.where(left > 0, left, 1), left[..., 0] == 0


def _continues(scheme: Scheme, q: Array, words: Array) -> Array:
  """bool[A, N]: whether a drafter whose logits are log q draws each node, had it come so far."""
  log_probs = [jnp.zeros_like(q[:, 0, 0])]  # at the root and at each node
  for node, parent in enumerate(scheme.parents):
    chosen = jnp.take_along_axis(q[:, node], words[:, node, None], axis=-1)[:, 0]
    log_probs.append(log_probs[parent + 1] + jnp.log(chosen))
  above = jnp.stack([log_probs[parent + 1] for parent in scheme.parents], axis=1)
  return chains.continues(above, jnp.log(q), jnp.asarray(scheme.stop_below, q.dtype))


def _valid_to_the_root(valid: Array, parents: tuple[int, ...]) -> Array:
  columns = []
  for node, parent in enumerate(parents):
    columns.append(valid[:, node] if parent == ROOT else valid[:, node] & columns[parent])
  return jnp.stack(columns, axis=1)
