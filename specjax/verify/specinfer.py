"""Multi-step speculative sampling: the children of a node are tried in random order.

Miao et al., ASPLOS 2024, arXiv 2305.09781, algorithm 2 (VerifyStochastic).
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial

from specjax.logits import total
from specjax.trees import order
from specjax.types import Array, Draft, Error, Static, WITHOUT_REPLACEMENT
from specjax.verify import parts, residuals
from specjax.verify.rule import ANY, Judgement, Rule

_FACTORIALS = (1, 1, 2, 6, 24, 120)


def specinfer(width: int = 3) -> Rule:
  """Tries the children in uniformly random order, each against what the earlier ones left.

  Children may come from different drafters; each records the law that it was drawn from, and must
  have been drawn without regard to its siblings. Orders are summed over instead of drawn: the walk
  in index order accepts child x with the probability that the random order ends at x, given that it
  does not end at an earlier index. With m children that costs m! times the work of `recursive`.

  Args:
    width: the random order is over the first `width` children of a node (static); further ones are
      tried after them, by index. Any order keeps the target's law, and for children drawn
      independently from one law all orders have the same one.

  Raises:
    Error: a width that is not in 1 .. 5.
  """
  if width not in range(1, 6):
    raise Error(f"specinfer sums over width! orders, so width must be in 1 .. 5, got {width}.")
  return Rule(
      Partial(Static(_judge, width)), lossless=True, coupled=False,
      serves=ANY - {WITHOUT_REPLACEMENT}, bottom_up=False)


def _judge(width: int, draft: Draft, log_p: Array) -> Judgement:
  turns = _turns(draft.parents, min(width, draft.tokens.shape[0]))
  # A tree whose nodes have at most m children has m! orders; the others repeat them.
  m = jnp.minimum(order.sibling_ranks(draft.parents).max() + 1, width)
  orders = jnp.asarray(_FACTORIALS)[m]

  def try_in(order, reach):
    return reach.at[order].set(residuals.reaches(draft, log_p, turns[order]))

  reach = lax.fori_loop(0, orders, try_in, jnp.ones(turns.shape, log_p.dtype))
  accept = jax.vmap(lambda *order: residuals.acceptances(draft, log_p, *order))(turns, reach)
  ends, stays = jax.vmap(lambda *order: _outcomes(draft.parents, *order))(turns, accept)
  share = jnp.where(jnp.arange(len(turns)) < orders, 1 / orders.astype(log_p.dtype), 0)

  def log_next(row):
    def add(order, mixed):
      left = residuals.left_at(draft, log_p, reach[order], row)
      mass = total(left)
      return mixed + stays[order, row] / jnp.where(mass > 0, mass, 1) * left

    mixed = lax.fori_loop(0, orders, add, jnp.zeros_like(log_p[row]))
    return parts.log_normalised(mixed, log_p[row])

  return Judgement(_in_index_order(draft.parents, share @ ends, share @ stays), log_next)


def _turns(parents: Array, width: int) -> Array:
  """int32[width!, N]: when each node is tried, for every order of the first `width` siblings.

  The first m! orders leave all but the first m siblings where they are.
  """
  ranks = order.sibling_ranks(parents)
  orders = sorted(itertools.permutations(range(width)), key=lambda order: order[::-1], reverse=True)
  shuffled = jnp.asarray(np.array(orders, np.int32))[:, jnp.minimum(ranks, width - 1)]
  return jnp.where(ranks < width, shuffled, ranks)


def _outcomes(parents: Array, turn: Array, accept: Array) -> tuple[Array, Array]:
  """P(the trials below a row end with node n) float[N], and P(all are rejected) float[N + 1]."""
  siblings = parents[:, None] == parents[None, :]
  passed = jnp.where(siblings & (turn[None, :] < turn[:, None]), 1 - accept[None, :], 1).prod(-1)
  below = parents[None, :] == jnp.arange(-1, parents.shape[0], dtype=jnp.int32)[:, None]
  return passed * accept, jnp.where(below, 1 - accept[None, :], 1).prod(-1)


def _in_index_order(parents: Array, ends: Array, stays: Array) -> Array:
  """float[N]: P(the trials end with n | they do not end with an earlier sibling of n)."""
  later = order.earlier_siblings(parents).T
  possible = ends + jnp.where(later, ends[None, :], 0).sum(-1) + stays[parents + 1]
  return jnp.where(possible > 0, ends / jnp.where(possible > 0, possible, 1), 0)
