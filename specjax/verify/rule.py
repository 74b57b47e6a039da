"""A verification rule: a formula, and the coins that carry it out.

A rule states mathematics only: `decide` maps a draft and the target's laws to a `Decision`, for one
row, without a key. `verify` flips the coins of that decision, and `exact.law` sums over them, so the
sampler and the proof of a rule come from the same numbers.

The walk over the drafted tree has one of two directions:

  top down    start at the root and test its children in index order; an accepted node hands over to
              its own children, a rejected one to its next sibling. The walk stops where no child is
              left.
  bottom up   test the nodes in post-order, leaves first and first branch first; the first accepted
              node ends the walk, with its whole path accepted. If none is, the walk stops at the root.

Coupled rules (`gumbel`, `list_gumbel`) flip no coins: they compare tokens drawn with shared noise.
"""

from typing import Callable

import jax
import jax.numpy as jnp

from specjax.logits import law
from specjax.types import Array, Decision, Draft, PAD, Verdict, method, static
from specjax.verify import checks, walk


@method
class Rule:
  """One verification rule.

  formula(draft, log_p) -> Decision, or, for a coupled rule, formula(keys, draft, log_p) -> the stop
    node int32[] and the extra token int32[].
  lossless: the text keeps exactly the target's law, for every target and every drafter.
  coupled: `verify` reads the keys of absolute positions, key[depth + 1], instead of a round's key.
  trees: accepts drafts that branch.
  bottom_up: the direction of the walk.
  """

  formula: Callable
  lossless: bool = static()
  coupled: bool = static()
  trees: bool = static()
  bottom_up: bool = static()

  @property
  def decide(self) -> Callable[[Draft, Array], Decision] | None:
    """(draft, log_p float[N + 1, V]) -> Decision for one row; None for coupled rules."""
    return None if self.coupled else self._decide

  def _decide(self, draft: Draft, log_p: Array) -> Decision:
    checks.check(draft, log_p, self.trees)
    return self.formula(draft, log_p)

  def verify(self, key: Array, draft: Draft, log_p: Array, depth: int | None = None) -> Verdict:
    """Judges one draft of one row; batches are `vmap`s of this.

    Args:
      key: the round's key, or key[depth + 1] of the positions after the text if `coupled`. Consumed.
      draft: the drafted nodes.
      log_p: float[N + 1, V]; row 0 is the target's law after the root, row n + 1 after node n.
      depth: depth D of the tree (static); N, that of a chain, if not given.

    Raises:
      ValueError: shapes that do not fit or a tree given to a chain rule; outside of jit also laws
        that are not normalised. Inside jit the same checks are `checkify.debug_check`s.
    """
    checks.check(draft, log_p, self.trees)
    depth = draft.tokens.shape[0] if depth is None else depth
    if self.coupled:
      stop, extra = self.formula(key, draft, log_p)
    else:
      stop, extra = flip(key, draft, self.formula(draft, log_p), self.bottom_up)
    return verdict(draft, stop, extra, depth)


def flip(key: Array, draft: Draft, decision: Decision, bottom_up: bool) -> tuple[Array, Array]:
  """Flips the coins of a decision: the node where the walk stops (or ROOT) and the extra token.

  The comparison is strict, with u in [0, 1), so a node of acceptance 0 is never accepted and one of
  acceptance 1 always.
  """
  coin_key, extra_key = jax.random.split(key)
  coins = jax.random.uniform(coin_key, decision.accept.shape, decision.accept.dtype)
  heads = (coins < decision.accept) & draft.valid
  stop = (walk.first_bottom_up if bottom_up else walk.last_top_down)(draft.parents, heads)
  return stop, law.sample(extra_key, decision.log_next[stop + 1])


def verdict(draft: Draft, stop: Array, extra: Array, depth: int) -> Verdict:
  """The record of a walk that stopped at node `stop` (or ROOT) with the extra token int32[]."""
  nodes = draft.tokens.shape[0]
  path = walk.path_to(draft.parents, stop, depth)
  accepted = walk.contains(path, jnp.arange(nodes, dtype=jnp.int32))
  on_path = jnp.append(jnp.ones(1, bool), accepted)[draft.parents + 1]  # the root always is
  beaten = walk.any_earlier_sibling(draft.parents, accepted)
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
