"""Greedy multi-path block verification: pick the most promising of K paths, then judge it as a block.

Thomas and Pal 2026, arXiv 2602.16961.
"""

import functools

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.types import Array, Draft, ROOT
from specjax.verify import checks, parts, ranks, walk
from specjax.verify.rule import Judgement, Rule


def multipath_block() -> Rule:
  """Follows, at every prefix, the drafted token of the highest p / q; then block verification.

  The draft is K chains below the root, drawn independently from one law and of one length (or ended
  by what stands on the chain itself); equal prefixes are not merged, since a prefix that was drawn
  twice counts twice. The law of the picked path is that of a maximum of K paths in lexicographic
  order, and takes the place of q in `block`. With one path the rule is `block`. More paths can accept
  less: where p = q the pick skews a perfect draft. The order of the tokens is that of `ranks`.
  """
  return Rule(Partial(_judge), lossless=True, coupled=False, trees=True, bottom_up=True)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  """Block verification of the picked path; other nodes are never accepted."""
  checks.check_chains(draft, "multipath_block")
  nodes = draft.tokens.shape[0]
  log_q = parts.draft_law(draft, log_p.shape[-1], log_p.dtype)
  child_of = _children_on_path(draft, _pick(draft, log_p, log_q))
  step = functools.partial(_step_back, draft, log_p, log_q)

  def descend(carry):
    row, log_w, share, accept = carry
    child = child_of[row]
    stepped_back, _, log_w_child, share_child = step(row, child, log_w[row], share[row])
    accept = accept.at[row].set(stepped_back).at[child + 1].set(jnp.exp(log_w_child))
    log_w, share = log_w.at[child + 1].set(log_w_child), share.at[child + 1].set(share_child)
    return child + 1, log_w, share, accept

  zero = jnp.zeros(nodes + 1, log_p.dtype)
  start = jnp.int32(0), zero, zero.at[0].set(1), zero
  _, log_w, share, accept = lax.while_loop(
      lambda carry: child_of[carry[0]] < nodes, descend, start)

  def log_next(row):
    left = step(row, jnp.minimum(child_of[row], nodes - 1), log_w[row], share[row])[1]
    return jnp.where(child_of[row] < nodes, jnp.log(left), log_p[row])

  return Judgement(accept[1:], log_next)


def _pick(draft: Draft, log_p: Array, log_q: Array) -> Array:
  """The last node int32[] of the lexicographically highest path, ROOT if none is valid."""
  def children(standing):
    return draft.valid & standing[draft.parents + 1]

  def descend(carry):
    standing, _ = carry
    # All standing nodes share one prefix; one row speaks for it, so that rounding cannot split it.
    row = jnp.argmax(standing)
    ratio = parts.log_ratio(log_p[row, draft.tokens], parts.at_token(log_q, draft.tokens))
    best = ranks.highest(ratio, draft.tokens, children(standing))
    return jnp.append(False, best), jnp.argmax(best).astype(jnp.int32)

  root = jnp.arange(draft.tokens.shape[0] + 1) == 0
  return lax.while_loop(lambda carry: children(carry[0]).any(), descend, (root, jnp.int32(ROOT)))[1]


def _children_on_path(draft: Draft, last: Array) -> Array:
  """int32[N + 1]: the node that follows each row on the path to the node `last`, N if none does."""
  nodes = draft.tokens.shape[0]
  index = jnp.arange(nodes, dtype=jnp.int32)
  on_path = walk.contains(walk.path_to(draft.parents, last, nodes), index)
  rows = jnp.arange(nodes + 1, dtype=jnp.int32)
  follows = on_path[None, :] & (draft.parents[None, :] + 1 == rows[:, None])
  return jnp.where(follows, index[None, :], nodes).min(-1)


def _step_back(draft: Draft, log_p: Array, log_q: Array, row: Array, child: Array,
               log_w: Array, share: Array):
  """Block verification of one row and its picked child, from the row's own weight and share.

  Returns:
    The acceptance float[] of the row if the child is rejected, the law float[V] that is then left, and
    the child's weight and share.
  """
  paths = (draft.valid & (draft.parents == ROOT)).sum().astype(log_p.dtype)
  log_picked, shares = _law_of_the_pick(log_p[row], log_q[child], share, paths)
  accept, left = parts.after_rejection(log_w, jnp.exp(log_p[row]), jnp.exp(log_picked))
  token = draft.tokens[child]
  log_w_child = jnp.minimum(log_w + parts.log_ratio(log_p[row, token], log_picked[token]), 0)
  return accept, left, log_w_child, shares[token]


def _law_of_the_pick(log_p: Array, log_q: Array, share: Array, paths: Array) -> tuple[Array, Array]:
  """The law of the picked path's next token, and the share of each token's prefix.

  Let a prefix have probability x, and let A be the probability that a random path ranks strictly
  below it: the best of K paths starts with it with probability (A + x)^K - A^K. Only the share
  s = x / (A + x) is carried, which neither underflows on long paths nor loses digits to A. With C the
  mass up to and including a token, the token's own A + x is g = 1 - s (1 - C) times that of the
  prefix, and its share s q / g, so its conditional probability is

    g^K (1 - (1 - s q / g)^K) / (1 - (1 - s)^K).

  Args:
    log_p: float[V], the target's law after the prefix.
    log_q: float[V], the law that every path draws its next token from.
    share: s of the prefix, float[].
    paths: K, float[].
  """
  q = jnp.exp(log_q)
  up_to = ranks.mass_up_to(jnp.where(q > 0, parts.log_ratio(log_p, log_q), 0), q)
  share = jnp.maximum(share, jnp.finfo(q.dtype).eps ** 2)  # below that the law is q to the last digit
  grown = 1 - share * (1 - up_to)
  possible = (q > 0) & (grown > 0)
  shares = jnp.where(possible, jnp.minimum(share * q / jnp.where(possible, grown, 1), 1), 0)
  some = lambda share: -jnp.expm1(paths * jnp.log1p(-share))  # of K paths at least one
  return jnp.log(grown ** paths * some(shares) / some(share)), shares
