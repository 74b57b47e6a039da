"""Greedy multi-path block verification: pick the most promising of K paths, then judge it as a block.

Thomas and Pal 2026, arXiv 2602.16961.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.types import Array, Decision, Draft, PAD, ROOT
from specjax.verify import checks, parts, ranks, walk
from specjax.verify.rule import Rule


def multipath_block() -> Rule:
  """Follows, at every prefix, the drafted token of the highest p / q; then block verification.

  The draft is K chains below the root, drawn independently from one law and of one length (or ended
  by what stands on the chain itself); equal prefixes are not merged, since a prefix that was drawn
  twice counts twice. The law of the picked path is that of a maximum of K paths in lexicographic
  order, and takes the place of q in `block`. With one path the rule is `block`. More paths can accept
  less: where p = q the pick skews a perfect draft. The order of the tokens is that of `ranks`.
  """
  return Rule(Partial(_decide), lossless=True, coupled=False, trees=True, bottom_up=True)


def _decide(draft: Draft, log_p: Array) -> Decision:
  checks.check_chains(draft, "multipath_block")
  nodes = draft.tokens.shape[0]
  if nodes == 0:
    return Decision(jnp.zeros(0, log_p.dtype), log_p)
  log_q = parts.draft_law(draft, log_p.shape[-1], log_p.dtype)
  path = walk.path_to(draft.parents, _pick(draft, log_p, log_q), nodes)
  return _judge(path, draft, log_p, log_q)


def _pick(draft: Draft, log_p: Array, log_q: Array) -> Array:
  """The last node int32[] of the path that is highest in lexicographic order, ROOT if none is valid."""
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


def _judge(path: Array, draft: Draft, log_p: Array, log_q: Array) -> Decision:
  """Block verification of one path int32[N], down from the root; other nodes are never accepted."""
  paths = (draft.valid & (draft.parents == ROOT)).sum().astype(log_p.dtype)

  def pass_on(carry):
    depth, log_w, share, accept, log_next = carry
    row, child = jnp.where(depth > 0, path[depth - 1] + 1, 0), path[depth]
    log_picked, shares = _law_of_the_pick(log_p[row], log_q[child], share, paths)
    stepped_back, residual = parts.after_rejection(
        log_w, jnp.exp(log_p[row]), jnp.exp(log_picked))
    token = draft.tokens[child]
    log_w = jnp.minimum(log_w + parts.log_ratio(log_p[row, token], log_picked[token]), 0)
    accept = accept.at[row].set(stepped_back).at[child + 1].set(jnp.exp(log_w))
    log_next = lax.dynamic_update_index_in_dim(log_next, jnp.log(residual), row, 0)
    return depth + 1, log_w, shares[token], accept, log_next

  def goes_on(carry):
    return (carry[0] < path.shape[0]) & (path[jnp.minimum(carry[0], path.shape[0] - 1)] != PAD)

  one = jnp.ones((), log_p.dtype)
  start = 0, one * 0, one, jnp.zeros(log_p.shape[0], log_p.dtype), log_p
  *_, accept, log_next = lax.while_loop(goes_on, pass_on, start)
  return Decision(accept[1:], log_next)


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
