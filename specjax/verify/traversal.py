"""Traversal verification: a drafted tree judged from its leaves.

Weng, Hu, Chen, Liu, Mei, Qiu, Tian, Shi, NeurIPS 2025, arXiv 2505.12398, section 3.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.types import Array, Decision, Draft
from specjax.verify import parts
from specjax.verify.rule import Rule


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
  return Rule(Partial(_decide), lossless=True, coupled=False, trees=True, bottom_up=True)


def _decide(draft: Draft, log_p: Array) -> Decision:
  log_q = parts.draft_law(draft, log_p.shape[-1], log_p.dtype)

  def reject(carry, node):
    """Weighs a node, then takes it away from its parent, whose children come in index order."""
    log_w, laws = carry
    parent, index, token, valid, log_s = node
    log_w_parent, law = log_w[parent], lax.dynamic_index_in_dim(laws, parent, keepdims=False)
    log_w_node = jnp.minimum(log_w_parent + parts.log_ratio(jnp.log(law[token]), log_s[token]), 0)
    w_left, law_left = parts.after_rejection(log_w_parent, law, jnp.exp(log_s))
    log_w = log_w.at[index].set(jnp.where(valid, log_w_node, -jnp.inf))
    log_w = log_w.at[parent].set(jnp.where(valid, jnp.log(w_left), log_w_parent))
    law = jnp.where(valid, law_left, law)
    return (log_w, lax.dynamic_update_index_in_dim(laws, law, parent, 0)), None

  start = jnp.zeros(log_p.shape[0], log_p.dtype), jnp.exp(log_p)
  rows = draft.parents + 1, jnp.arange(1, log_p.shape[0]), draft.tokens, draft.valid, log_q
  (log_w, laws), _ = lax.scan(reject, start, rows)
  return Decision(
      accept=jnp.where(draft.valid, jnp.exp(log_w[1:]), 0),
      log_next=jnp.log(laws))
