"""Traversal verification: a drafted tree judged from its leaves.

Weng, Hu, Chen, Liu, Mei, Qiu, Tian, Shi, NeurIPS 2025, arXiv 2505.12398, section 3.
"""

import functools

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.types import Array, Draft
from specjax.verify import parts
from specjax.verify.rule import Judgement, Rule


def traversal() -> Rule:
  """Tests leaves first; a rejected node is taken away, and its parent judged by what is left.

  A child x of a node with weight w and law B weighs min(1, w B(x) / S(x)), S being the law that x was
  drawn from. If x is rejected, [w B - S]+ gives the parent its new law, and Z / (Z + 1 - w) its new
  weight. Since `Draft.log_q` records the law of each node given its earlier siblings, S after a
  rejection is simply the next sibling's record: q again for independent siblings, q without the
  rejected token for siblings drawn without replacement. So one formula serves both, as it serves
  independent paths, whether they stay apart below the root or have equal prefixes merged.

  On a chain the rule is `block`. Each node's numbers are those that hold once everything before it in
  post-order was rejected, and depend on its ancestors and their earlier children only: one pass in
  index order finds them.
  """
  return Rule(Partial(_judge), lossless=True, coupled=False, trees=True, bottom_up=True)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  log_q = parts.draft_law(draft, log_p.shape[-1], log_p.dtype)
  lose = functools.partial(_lose_children, draft, log_p, log_q)

  def visit(log_w, row):
    log_w, log_w_left, _ = lose(log_w, row)
    return log_w, log_w_left

  root = jnp.full(log_p.shape[0], -jnp.inf, log_p.dtype).at[0].set(0)
  log_w, log_w_left = lax.scan(visit, root, jnp.arange(log_p.shape[0], dtype=jnp.int32))
  return Judgement(
      accept=jnp.where(draft.valid, jnp.exp(log_w_left[1:]), 0),
      log_next=lambda row: jnp.log(lose(log_w, row)[2]))


def _lose_children(draft: Draft, log_p: Array, log_q: Array, log_w: Array, row: Array):
  """Weighs the children of a row one after the other, and takes each away once it is weighed.

  Args:
    draft: the drafted nodes of one row.
    log_p: float[N + 1, V], the target's laws.
    log_q: float[N, V], the draft's laws.
    log_w: float[N + 1], the weights with which rows start; that of `row` is known.
    row: int32[].

  Returns:
    `log_w` with the children's weights, and the weight float[] and the law float[V] left to `row`.
  """
  nodes = draft.tokens.shape[0]

  def child_after(node):
    index = jnp.arange(nodes, dtype=jnp.int32)
    is_next = draft.valid & (draft.parents == row - 1) & (index > node)
    return jnp.where(is_next, index, nodes).min()

  def lose(carry):
    child, log_w, log_w_left, law = carry
    token, log_s = draft.tokens[child], log_q[child]
    ratio = parts.log_ratio(jnp.log(law[token]), log_s[token])
    log_w = log_w.at[child + 1].set(jnp.minimum(log_w_left + ratio, 0))
    w_left, law = parts.after_rejection(log_w_left, law, jnp.exp(log_s))
    return child_after(child), log_w, jnp.log(w_left), law

  start = child_after(-1), log_w, log_w[row], jnp.exp(log_p[row])
  return lax.while_loop(lambda carry: carry[0] < nodes, lose, start)[1:]
