"""Siblings tried one after another against what is left of the target's law.

Let the children of a node be tried in some order, and D_j be the law that child j was drawn from.
With R_1 = p, child j is accepted with probability min(1, R_j(x) / D_j(x)), and

    R_{j+1} = norm([R_j - D_j]+).

Without the normalisation this is r_{j+1} = [r_j - c_j D_j]+ with c_j = sum r_j, and since clipping
once clips for good,

    r_j = [p - sum_{i < j} c_i D_i]+.

So all that a rule has to know about the past is one number c_j for each node, c_j being the
probability over drafts that child j is reached. The first child has c = 1 without a look at the
vocabulary, hence on a chain only single entries of the laws are read.
"""

import jax.numpy as jnp
from jax import lax

from specjax.logits import total
from specjax.types import Array, Draft
from specjax.verify import parts


def reaches(draft: Draft, log_p: Array, turn: Array) -> Array:
  """c float[N], for siblings that are tried in the order of turn int32[N] = 0, 1, 2, ..."""
  def next_turn(now, reach):
    before = turn < now
    mass = lax.map(
        lambda row: total(left_by(draft, log_p, reach, row, before)),
        jnp.arange(log_p.shape[0], dtype=jnp.int32))
    return jnp.where(turn == now, mass[draft.parents + 1], reach)

  return lax.fori_loop(1, turn.max() + 1, next_turn, jnp.ones(turn.shape, log_p.dtype))


def acceptances(draft: Draft, log_p: Array, turn: Array, reach: Array) -> Array:
  """float[N]: min(1, R(x) / D(x)) of every node; 0 if it is not valid."""
  siblings = draft.parents[:, None] == draft.parents[None, :]
  before = siblings & (turn[None, :] < turn[:, None]) & draft.valid[None, :]
  spent = jnp.where(before, reach[None, :] * given(draft, log_p.dtype), 0).sum(-1)
  left = jnp.maximum(jnp.exp(log_p[draft.parents + 1, draft.tokens]) - spent, 0)
  drawn = reach * jnp.exp(parts.log_q_of_tokens(draft, log_p.dtype))
  accept = jnp.where(left < drawn, left / jnp.where(drawn > 0, drawn, 1), 1)
  return jnp.where(draft.valid & (left > 0), accept, 0)


def given(draft: Draft, dtype) -> Array:
  """float[N, N]: [n, j] is what D_j gives to the token of node n."""
  if draft.log_q is None:
    return (draft.tokens[:, None] == draft.tokens[None, :]).astype(dtype)
  return jnp.exp(draft.log_q[:, draft.tokens].T)


def left_at(draft: Draft, log_p: Array, reach: Array, row: Array) -> Array:
  """r float[V] below row `row` once all its children have been rejected."""
  return left_by(draft, log_p, reach, row, draft.valid)


def left_by(draft: Draft, log_p: Array, reach: Array, row: Array, tried: Array) -> Array:
  """[p - sum_j c_j D_j]+ float[V] below row `row`, over its children among tried bool[N]."""
  children = draft.valid & (draft.parents == row - 1) & tried

  def spend(place, spent):
    child = jnp.argmax(jnp.cumsum(children) > place)
    return spent + reach[child] * jnp.exp(parts.law_of(draft, child, log_p))

  first = jnp.where(children.any(), spend(0, 0), 0)  # outside of the loop, which a chain then skips
  spent = lax.fori_loop(1, children.sum(), spend, first)
  return jnp.maximum(jnp.exp(log_p[row]) - spent, 0)
