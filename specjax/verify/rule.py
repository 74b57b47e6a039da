"""A verification rule: a formula, and the coins that carry it out.

A rule states mathematics only: its formula maps a draft and the target's laws to the probability
that each node is accepted, and to the law of the extra token at each place where the walk can stop;
for one row, without a key. `verify` flips the coins of that judgement and asks for the one law that
it needs; `decide` asks for all of them and `exact.law` sums over the coins. So the sampler and the
proof of a rule come from the same numbers.

The walk over the drafted tree has one of two directions:

  top down    start at the root and test its children in index order; an accepted node hands over to
              its own children, a rejected one to its next sibling. The walk stops where no child is
              left.
  bottom up   test the nodes in post-order, leaves first and first branch first; the first accepted
              node ends the walk, with its whole path accepted. If none is, it stops at the root.

Coupled rules (`gumbel`, `list_gumbel`) flip no coins: they compare tokens drawn with shared noise.
"""

from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp

from specjax import logits
from specjax.trees import order
from specjax.types import (
    Array, CHAIN, Decision, DETERMINISTIC, Draft, Error, method, PAD, ROOT, SIBLINGS, static,
    Verdict)
from specjax.verify import checks, walk

# What `Rule.serves` says in the main; a rule of trees that serves less than any names the kinds.
CHAINS = frozenset((CHAIN, DETERMINISTIC))  # a single path, drawn or chosen
ANY = frozenset(SIBLINGS)


class Judgement(NamedTuple):
  """A `Decision` whose laws are computed when they are asked for.

  The walk stops in one place, so the sampler needs one law of N + 1. Over a vocabulary of 1e5 the
  others would cost more than everything else that a rule does on a chain.
  """

  accept: Array  # float[N]: P(node is accepted | node is tested)
  log_next: Callable[[Array], Array]  # row int32[] -> float[V]: the law of the extra token there


@method
class Rule:
  """One verification rule.

  formula(draft, log_p) -> Decision, or a Judgement where that spares work; for a coupled rule,
    formula(keys, draft, log_p) -> the stop node int32[] and the extra token int32[].
  lossless: the text keeps exactly the target's law, for every target and every drafter that draws
    siblings in a way that the rule serves.
  coupled: `verify` reads the keys of absolute positions, key[depth + 1], instead of a round's key.
  serves: the ways of drawing siblings, out of `types.SIBLINGS`, that the rule is lossless for; if
    it is lossy, those that it can judge. `CHAINS` of a rule for a single path.
  bottom_up: the direction of the walk.
  """

  formula: Callable
  lossless: bool = static()
  coupled: bool = static()
  serves: frozenset[str] = static()
  bottom_up: bool = static()

  def __post_init__(self):
    if not (isinstance(self.serves, frozenset) and self.serves <= ANY):
      raise Error(
          f"A rule's `serves` is a frozenset of {', '.join(map(repr, SIBLINGS))}, got "
          f"{self.serves!r}.")

  @property
  def trees(self) -> bool:
    """Whether drafts may branch."""
    return not self.serves <= CHAINS

  def keeps_law(self, siblings: str, is_chain: bool) -> bool:
    """Whether the rule serves drafts whose siblings are drawn in that way.

    Args:
      siblings: one of `types.SIBLINGS`, as `Drafter.siblings`.
      is_chain: every draft is a single path. It has no siblings then, and how the drafter would
        draw them does not matter.
    """
    return CHAIN in self.serves if is_chain else self.trees and siblings in self.serves

  def check_serves(self, siblings: str, is_chain: bool) -> None:
    """Refuses drafts that the rule cannot judge or, if it is lossless, would bias the text with.

    Raises:
      Error: the former or the latter.
    """
    if not (is_chain or self.trees):
      raise Error(
          "The drafter proposes trees, but the rule judges chains only: choose a rule with "
          "rule.trees.")
    if self.lossless and not self.keeps_law(siblings, is_chain):
      raise Error(
          f"The drafter's siblings are {siblings!r}, but the rule keeps the target's law only for "
          f"{', '.join(sorted(map(repr, self.serves)))}. The rules recursive and traversal serve "
          "any siblings.")

  @property
  def decide(self) -> Callable[[Draft, Array], Decision] | None:
    """(draft, log_p float[N + 1, V]) -> Decision for one row; None for coupled rules."""
    return None if self.coupled else self._decide

  def _decide(self, draft: Draft, log_p: Array) -> Decision:
    draft, log_p = jax.tree.map(jnp.asarray, (draft, log_p))
    checks.check_scalars(self.formula)
    checks.check(draft, log_p, self.trees)
    accept, log_next = self.judge(draft, log_p)
    return Decision(accept, jax.vmap(log_next)(jnp.arange(log_p.shape[0], dtype=jnp.int32)))

  def judge(self, draft: Draft, log_p: Array) -> Judgement:
    """`decide` with laws on demand and without checks: what rules made of other rules build on."""
    nodes = draft.tokens.shape[0]
    if nodes == 0:  # formulas need not think of it: they see one node that is not valid
      draft, log_p = _one_invalid_node(log_p)
    judged = self.formula(draft, log_p)
    if isinstance(judged, Decision):
      return Judgement(judged.accept[:nodes], lambda row: judged.log_next[row])
    return judged._replace(accept=judged.accept[:nodes])

  def verify(self, key: Array, draft: Draft, log_p: Array, depth: int | None = None) -> Verdict:
    """Judges one draft of one row; batches are `vmap`s of this.

    Args:
      key: the round's key, or key[depth + 1] of the positions after the text if `coupled`; it is
        consumed.
      draft: the drafted nodes.
      log_p: float[N + 1, V]; row 0 is the target's law after the root, row n + 1 after node n.
      depth: depth D of the tree (static); N, that of a chain, if not given.

    Raises:
      ValueError: shapes or dtypes that do not fit, a number of the rule that is an array; outside
        of jit also laws that are not normalised, a valid node below one that is not, a tree given
        to a chain rule, a node deeper than `depth`. Inside jit the latter are
        `checkify.debug_check`s.
    """
    draft, log_p = jax.tree.map(jnp.asarray, (draft, log_p))
    depth = draft.tokens.shape[0] if depth is None else depth
    checks.check_scalars(self.formula)
    checks.check(draft, log_p, self.trees, depth)
    if self.coupled:
      stop, extra = self.formula(key, draft, log_p)
    else:
      stop, extra = flip(key, draft, self.judge(draft, log_p), self.bottom_up)
    return verdict(draft, stop, extra, depth)


def _one_invalid_node(log_p: Array) -> tuple[Draft, Array]:
  draft = Draft(
      jnp.full(1, PAD, jnp.int32), jnp.full(1, ROOT, jnp.int32), log_p, jnp.zeros(1, bool))
  return draft, jnp.concatenate([log_p, log_p])


def flip(key: Array, draft: Draft, judgement: Judgement, bottom_up: bool) -> tuple[Array, Array]:
  """Flips the coins of a judgement: the node where the walk stops (or ROOT) and the extra token.

  The comparison is strict, with u in [0, 1), so a node of acceptance 0 is never accepted and one of
  acceptance 1 always.
  """
  coin_key, extra_key = jax.random.split(key)
  coins = jax.random.uniform(coin_key, judgement.accept.shape, judgement.accept.dtype)
  heads = (coins < judgement.accept) & draft.valid
  stop = (walk.first_bottom_up if bottom_up else walk.last_top_down)(draft.parents, heads)
  return stop, logits.sample_uncoupled(extra_key, judgement.log_next(stop + 1))


def verdict(draft: Draft, stop: Array, extra: Array, depth: int) -> Verdict:
  """The record of a walk that stopped at node `stop` (or ROOT) with the extra token int32[]."""
  nodes = draft.tokens.shape[0]
  path = order.path_to(draft.parents, stop, depth)
  accepted = order.contains(path, jnp.arange(nodes, dtype=jnp.int32))
  on_path = jnp.append(jnp.ones(1, bool), accepted)[draft.parents + 1]  # the root always is
  beaten = order.any_earlier_sibling(draft.parents, accepted)
  length = (path != PAD).sum(dtype=jnp.int32)
  place = jnp.arange(depth + 1, dtype=jnp.int32)
  source = jnp.where(place < length, jnp.append(path, PAD), nodes)
  tokens = jnp.where(place <= length, jnp.append(draft.tokens, extra)[source], PAD)
  return Verdict(
      tokens=tokens.astype(jnp.int32),
      count=length + 1,
      path=path,
      tested=draft.valid & on_path & ~beaten,
      accepted=accepted)
