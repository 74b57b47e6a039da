"""Traversal verification: a drafted tree judged from its leaves.

Weng, Hu, Chen, Liu, Mei, Qiu, Tian, Shi, NeurIPS 2025, arXiv 2505.12398, section 3.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.logits import total
from specjax.types import Array, Draft
from specjax.verify import parts, residuals
from specjax.verify.rule import ANY, Judgement, Rule


def traversal() -> Rule:
  """Tests leaves first; a rejected node is taken away, and its parent judged by what is left.

  A child x of a node with weight w and law B weighs min(1, w B(x) / S(x)), S being the law that x
  was drawn from. If x is rejected, [w B - S]+ gives the parent its new law, and Z / (Z + 1 - w) its
  new weight. Since `Draft.log_q` records the law of each node given its earlier siblings, S after a
  rejection is simply the next sibling's record: q again for independent siblings, q without the
  rejected token for siblings drawn without replacement. So one formula serves both, as it serves
  independent paths, whether they stay apart below the root or have equal prefixes merged.

  As in `residuals`, the laws need not be kept: with M the mass of u = [p - sum c_i S_i]+ over the
  children taken so far, B is u / M, the next child has c = M / w, and Z = w M' / M with the new
  mass M'. The first child takes one pass over the vocabulary, so a chain takes one for each node.

  On a chain the rule is `block`. Each node's numbers are those that hold once everything before
  it in post-order was rejected, and depend on its ancestors and their earlier children only: one
  pass in index order finds them.
  """
  return Rule(Partial(_judge), lossless=True, coupled=False, serves=ANY, bottom_up=True)


class _Row(NamedTuple):
  """A row whose children are taken away one after the other, and what is known of all nodes."""

  child: Array  # int32[]: the next child, N after the last
  log_w: Array  # float[]: the logarithm of the weight that is left to the row
  mass: Array  # float[]: M
  log_w_start: Array  # float[N + 1]: the weights with which rows start
  cost: Array  # float[N]: c


def _judge(draft: Draft, log_p: Array) -> Judgement:
  nodes = draft.tokens.shape[0]
  lose = functools.partial(_lose_children, draft, log_p, residuals.given(draft, log_p.dtype))

  def visit(known, row):
    lost = lose(row, *known)
    return (lost.log_w_start, lost.cost), lost.log_w

  start = jnp.full(nodes + 1, -jnp.inf, log_p.dtype).at[0].set(0), jnp.zeros(nodes, log_p.dtype)
  rows = jnp.arange(nodes, dtype=jnp.int32)  # not the last, which has no children: they come later
  (log_w_start, cost), log_w = lax.scan(visit, start, rows)
  return Judgement(
      accept=jnp.where(draft.valid, jnp.exp(jnp.append(log_w[1:], log_w_start[-1])), 0),
      log_next=lambda row: parts.log_normalised(
          residuals.left_by(draft, log_p, cost, row, cost > 0), log_p[row]))


def _lose_children(draft: Draft, log_p: Array, given: Array, row: Array,
                   log_w_start: Array, cost: Array) -> _Row:
  """Weighs the children of a row one after the other, and takes each away once it is weighed.

  Args:
    draft: the drafted nodes of one row.
    log_p: float[N + 1, V], the target's laws.
    given: float[N, N] of `residuals.given`.
    row: int32[].
    log_w_start, cost: what is known so far; those of the row's children are filled in.
  """
  nodes = draft.tokens.shape[0]
  take = functools.partial(_take_away, draft, log_p, given)

  def take_others(row, now):
    first = jnp.argmax(_children(draft, row))
    spent = _spend(0, now.cost[first], jnp.exp(parts.law_of(draft, first, log_p)))
    return lax.while_loop(lambda carry: carry[0].child < nodes, lambda carry: take(row, *carry),
                          (now, spent))[0]

  start = _Row(
      _first(_children(draft, row)), log_w_start[row], jnp.ones((), log_p.dtype), log_w_start, cost)
  now = parts.where_needed(
      start.child < nodes, lambda row, now: take(row, now, 0)[0], (row, start), start)
  return parts.where_needed(now.child < nodes, take_others, (row, now), now)


def _children(draft: Draft, row: Array) -> Array:
  """bool[N]: the valid children of a row."""
  return draft.valid & (draft.parents == row - 1)


def _first(mark: Array) -> Array:
  """The first node int32[] that carries the mark bool[N], N if none does."""
  index = jnp.arange(mark.shape[0], dtype=jnp.int32)
  return jnp.where(mark, index, mark.shape[0]).min()


def _spend(spent: Array, cost: Array, q: Array) -> Array:
  """spent + cost q float[V]; a child without cost adds nothing, whatever its law."""
  return jnp.where(cost > 0, spent + cost * q, spent)


def _take_away(draft: Draft, log_p: Array, given: Array, row: Array,
               now: _Row, spent: Array) -> tuple[_Row, Array]:
  """Weighs and takes away the next child; spent is sum c_i S_i float[V] over those before it."""
  children = _children(draft, row)
  child, q = now.child, jnp.exp(parts.law_of(draft, now.child, log_p))
  spent_there = jnp.where(children & (now.cost > 0), now.cost * given[child], 0).sum()
  left_there = jnp.maximum(jnp.exp(log_p[row, draft.tokens[child]]) - spent_there, 0)
  ratio = parts.log_ratio(jnp.log(left_there / now.mass), jnp.log(given[child, child]))
  weight = jnp.minimum(now.log_w + ratio, 0)

  w = jnp.exp(now.log_w)
  possible = w >= jnp.finfo(w.dtype).tiny  # else c would overflow; such a row is never accepted
  cost = jnp.where(possible, now.mass / jnp.where(possible, w, 1), 0)
  mass = total(jnp.maximum(jnp.exp(log_p[row]) - _spend(spent, cost, q), 0))
  # Where nothing is left the law stays, as in `parts.after_rejection`: the child costs nothing.
  cost = jnp.where(mass > 0, cost, 0)
  after = _Row(
      child=_first(children & (jnp.arange(children.shape[0], dtype=jnp.int32) > child)),
      log_w=jnp.log(parts.weight_left(now.log_w, w * mass / now.mass)),
      mass=jnp.where(mass > 0, mass, now.mass),
      log_w_start=now.log_w_start.at[child + 1].set(weight),
      cost=now.cost.at[child].set(cost))
  return after, _spend(spent, cost, q)
