"""Counts of what happened in each round, kept inside jit; every ratio is taken from them later."""

from typing import NamedTuple

import jax.numpy as jnp

from specjax.types import Array, Verdict


class Counts(NamedTuple):
  """Sums over the rounds of each row. Only tokens that stand in the text are counted."""

  rounds: Array  # int32[B]: target passes that emitted at least one token
  emitted: Array  # int32[B]: tokens, the extra token of each round included
  drafting: Array  # int32[B]: rounds that had a draft, one valid node at least
  drafted: Array  # int32[B, D]: nodes drafted at each depth
  tested: Array  # int32[B, D]: nodes judged at each depth of the draft
  accepted: Array  # int32[B, D]: rounds that accepted a node at each depth
  lengths: Array  # int32[B, D + 1]: rounds that emitted 1, 2, ..., D + 1 tokens


def zeros(batch: int, depth: int) -> Counts:
  """Counts of no rounds at all, for drafts of depth D."""
  per_row = jnp.zeros(batch, jnp.int32)
  per_depth = jnp.zeros((batch, depth), jnp.int32)
  return Counts(per_row, per_row, per_row, per_depth, per_depth, per_depth,
                jnp.zeros((batch, depth + 1), jnp.int32))


def add(counts: Counts, verdict: Verdict, depths: Array, valid: Array) -> Counts:
  """Counts after one more round; a verdict of count 0 (a finished row) changes nothing.

  Args:
    counts: the counts so far.
    verdict: the round's verdict, every field with a leading batch axis.
    depths: int32[B, N], the depth of each drafted node.
    valid: bool[B, N], which nodes were drafted.
  """
  depth = counts.tested.shape[1]
  at_depth = depths[:, :, None] == jnp.arange(depth)[None, None, :]
  live = verdict.count > 0
  drafted = valid & live[:, None]
  emitted = verdict.count[:, None] == 1 + jnp.arange(depth + 1)[None, :]

  def of_depth(nodes):
    return (nodes[:, :, None] & at_depth).sum(1, dtype=jnp.int32)

  return Counts(
      rounds=counts.rounds + live.astype(jnp.int32),
      emitted=counts.emitted + verdict.count,
      drafting=counts.drafting + drafted.any(1).astype(jnp.int32),
      drafted=counts.drafted + of_depth(drafted),
      tested=counts.tested + of_depth(verdict.tested),
      accepted=counts.accepted + of_depth(verdict.accepted),
      lengths=counts.lengths + emitted.astype(jnp.int32))
