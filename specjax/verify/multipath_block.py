"""Greedy multi-path block verification: pick the most promising of K paths, judge it as a block.

Thomas and Pal 2026, arXiv 2602.16961.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.trees import order
from specjax.types import Array, CHAIN, Draft, PATH_NOISE, PATHS, ROOT
from specjax.verify import checks, parts, ranks
from specjax.verify.rule import Judgement, Rule


def multipath_block() -> Rule:
  """Follows, at every prefix, the drafted token of the highest p / q; then block verification.

  The draft is K chains below the root, drawn independently from one law and of one length (or
  ended by what stands on the chain itself); equal prefixes are not merged, since a prefix that was
  drawn twice counts twice. The law of the picked path is that of a maximum of K paths in
  lexicographic order, and takes the place of q in `block`. With one path the rule is `block`.
  More paths can accept less: where p = q the pick skews a perfect draft. The order of the tokens
  is that of `ranks`.
  """
  serves = frozenset((CHAIN, PATHS, PATH_NOISE))
  return Rule(Partial(_judge), lossless=True, coupled=False, serves=serves, bottom_up=True)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  """Block verification of the picked path; other nodes are never accepted."""
  checks.check_chains(draft, "multipath_block")
  nodes = draft.tokens.shape[0]
  child_of = _children_on_path(draft, _pick(draft, log_p))

  def descend(carry):
    row, log_w, share, accept = carry
    child = child_of[row]
    stepped_back, log_w_child, share_child = _step_back(
        draft, log_p, row, child, log_w[row], share[row])
    accept = accept.at[row].set(stepped_back).at[child + 1].set(jnp.exp(log_w_child))
    log_w, share = log_w.at[child + 1].set(log_w_child), share.at[child + 1].set(share_child)
    return child + 1, log_w, share, accept

  zero = jnp.zeros(nodes + 1, log_p.dtype)
  start = jnp.int32(0), zero, zero.at[0].set(1), zero
  _, log_w, share, accept = lax.while_loop(
      lambda carry: child_of[carry[0]] < nodes, descend, start)

  def log_next(row):
    picked = _law_left(draft, log_p, row, child_of[row], log_w[row], share[row])
    return jnp.where(child_of[row] < nodes, picked, log_p[row])

  return Judgement(accept[1:], log_next)


def _pick(draft: Draft, log_p: Array) -> Array:
  """The last node int32[] of the lexicographically highest path, ROOT if none is valid."""
  log_q = parts.log_q_of_tokens(draft, log_p.dtype)

  def children(standing):
    return draft.valid & standing[draft.parents + 1]

  def descend(carry):
    standing, _ = carry
    # All standing nodes share one prefix; one row speaks for it, so that rounding cannot split it.
    row = jnp.argmax(standing)
    ratio = parts.log_ratio(log_p[row, draft.tokens], log_q)
    best = ranks.highest(ratio, draft.tokens, children(standing))
    return jnp.append(False, best), jnp.argmax(best).astype(jnp.int32)

  root = jnp.arange(draft.tokens.shape[0] + 1) == 0
  return lax.while_loop(lambda carry: children(carry[0]).any(), descend, (root, jnp.int32(ROOT)))[1]


def _children_on_path(draft: Draft, last: Array) -> Array:
  """int32[N + 1]: the node that follows each row on the path to the node `last`, N if none does."""
  nodes = draft.tokens.shape[0]
  index = jnp.arange(nodes, dtype=jnp.int32)
  on_path = order.contains(order.path_to(draft.parents, last, nodes), index)
  rows = jnp.arange(nodes + 1, dtype=jnp.int32)
  follows = on_path[None, :] & (draft.parents[None, :] + 1 == rows[:, None])
  return jnp.where(follows, index[None, :], nodes).min(-1)


def _step_back(draft: Draft, log_p: Array, row: Array, child: Array,
               log_w: Array, share: Array) -> tuple[Array, Array, Array]:
  """Block verification of one row and its picked child, from the row's own weight and share.

  Returns:
    The acceptance float[] of the row if the child is rejected; the child's weight and share.
  """
  def judge(row, child, picked, picked_there, share_there):
    accept, _ = parts.after_rejection(log_w, jnp.exp(log_p[row]), picked)
    ratio = parts.log_ratio(log_p[row, draft.tokens[child]], jnp.log(picked_there))
    return accept, jnp.minimum(log_w + ratio, 0), share_there

  def judge_alone(row, child):
    q = jnp.exp(parts.law_of(draft, child, log_p))
    there = jnp.exp(parts.log_q_of_tokens(draft, log_p.dtype)[child])
    return judge(row, child, q, there, share)

  def judge_several(row, child):
    picked, shares = _law_of_the_pick(draft, log_p, row, child, share)
    token = draft.tokens[child]
    return judge(row, child, picked, picked[token], shares[token])

  return parts.where_needed(
      _paths(draft) > 1, judge_several, (row, child), judge_alone(row, child))


def _law_left(draft: Draft, log_p: Array, row: Array, child: Array,
              log_w: Array, share: Array) -> Array:
  """The law float[V], as logarithms, that is left to a row once its picked child was rejected."""
  def left(row, picked):
    return jnp.log(parts.after_rejection(log_w, jnp.exp(log_p[row]), picked)[1])

  return parts.where_needed(
      _paths(draft) > 1,
      lambda row, child: left(row, _law_of_the_pick(draft, log_p, row, child, share)[0]),
      (row, child), left(row, jnp.exp(parts.law_of(draft, child, log_p))))


def _paths(draft: Draft) -> Array:
  """K int32[]: how many chains begin at the root."""
  return (draft.valid & (draft.parents == ROOT)).sum(dtype=jnp.int32)


def _law_of_the_pick(draft: Draft, log_p: Array, row: Array, child: Array,
                     share: Array) -> tuple[Array, Array]:
  """The law of the picked path's next token, and the share of each token's prefix.

  Let a prefix have probability x, and let A be the probability that a random path ranks strictly
  below it: the best of K paths starts with it with probability (A + x)^K - A^K. Only the share
  s = x / (A + x) is carried, which neither underflows on long paths nor loses digits to A. With B
  the mass strictly below a token, the token's own A is b = 1 - s + s B times the A + x of the
  prefix, its A + x is g = b + s q times it, and its share s q / g.
  So its conditional probability is

    (g^K - b^K) / (1 - (1 - s)^K) = q h(g, b) / h(1, 1 - s),   h(g, b) = sum_{i < K} g^i b^(K-1-i),

  a form without differences, which is q itself for K = 1 and for s = 0.

  Args:
    row, child: int32[], the prefix and any node below it: every path draws its next token from the
      law of that one.
    share: s of the prefix, float[].

  Returns:
    Both float[V].
  """
  paths = _paths(draft)
  log_q = parts.law_of(draft, child, log_p)
  q = jnp.exp(log_q)
  up_to = ranks.mass_up_to(jnp.where(q > 0, parts.log_ratio(log_p[row], log_q), 0), q)
  lower = 1 - share + share * jnp.maximum(up_to - q, 0)
  grown = lower + share * q
  shares = jnp.where(grown > 0, jnp.minimum(share * q / jnp.where(grown > 0, grown, 1), 1), 0)
  some = _powers(jnp.ones_like(share), 1 - share, paths)
  return q * _powers(grown, lower, paths) / some, shares


def _powers(g: Array, b: Array, paths: Array) -> Array:
  """sum_{i < K} g^i b^(K-1-i) elementwise, by Horner's rule."""
  def add(_, carry):
    total, power = carry
    power = power * b
    return total * g + power, power

  return lax.fori_loop(1, paths, add, (jnp.ones_like(g), jnp.ones_like(g)))[0]
