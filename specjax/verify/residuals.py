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

from specjax.types import Array, Draft
from specjax.verify import parts


def reaches(draft: Draft, log_p: Array, turn: Array) -> Array:
  """c float[N], for siblings that are tried in the order of turn int32[N] = 0, 1, 2, ..."""
  below = draft.parents[None, :] + 1 == jnp.arange(log_p.shape[0], dtype=jnp.int32)[:, None]

  def next_turn(now, reach):
    before = jnp.where(below & (turn < now)[None, :], reach[None, :], 0)
    left = _left(before, draft, log_p).sum(-1)
    return jnp.where(turn == now, left[draft.parents + 1], reach)

  return lax.fori_loop(1, turn.max(initial=0) + 1, next_turn, jnp.ones(turn.shape, log_p.dtype))


def acceptances(draft: Draft, log_p: Array, turn: Array, reach: Array) -> Array:
  """float[N]: min(1, R(x) / D(x)) of every node; 0 if it is not valid."""
  siblings = draft.parents[:, None] == draft.parents[None, :]
  before = siblings & (turn[None, :] < turn[:, None]) & draft.valid[None, :]
  if draft.log_q is None:
    q_there = (draft.tokens[:, None] == draft.tokens[None, :]).astype(log_p.dtype)
  else:
    q_there = jnp.exp(draft.log_q[:, draft.tokens].T)  # [n, j]: what D_j gives to the token of n
  spent = jnp.where(before, reach[None, :] * q_there, 0).sum(-1)
  left = jnp.maximum(jnp.exp(log_p[draft.parents + 1, draft.tokens]) - spent, 0)
  drawn = reach * jnp.exp(parts.log_q_of_tokens(draft, log_p.dtype))
  accept = jnp.where(left < drawn, left / jnp.where(drawn > 0, drawn, 1), 1)
  return jnp.where(draft.valid & (left > 0), accept, 0)


def left_at(draft: Draft, log_p: Array, reach: Array, row: Array) -> Array:
  """r float[V] below row `row` once all its children have been rejected."""
  children = (draft.parents == row - 1)[None, :]
  return _left(jnp.where(children, reach[None, :], 0), draft, log_p[row][None])[0]


def _left(weights: Array, draft: Draft, log_p: Array) -> Array:
  """[p - sum_j weights[., j] D_j]+, float[K, V], for weights float[K, N] and log_p float[K, V]."""
  log_q = parts.draft_law(draft, log_p.shape[1], log_p.dtype)
  q = jnp.exp(jnp.where(draft.valid[:, None], log_q, -jnp.inf))
  spent = jnp.matmul(weights, q, precision=lax.Precision.HIGHEST)
  return jnp.maximum(jnp.exp(log_p) - spent, 0)
