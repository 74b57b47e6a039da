"""Typical acceptance: a drafted token passes if the target finds it likely enough.

Medusa: Cai, Li, Geng, Peng, Lee, Chen, Dao, ICML 2024, arXiv 2401.10774, section 2.3.1; the
threshold is that of truncated sampling by entropy (Hewitt, Manning, Liang 2022, arXiv 2210.15191).
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.logits import argmax, number, total
from specjax.trees import order
from specjax.types import Array, Draft
from specjax.verify import parts
from specjax.verify.rule import ANY, Judgement, Rule


def typical(epsilon: float = 0.09, delta: float = 0.3) -> Rule:
  """Accepts x where p(x) > min(epsilon, delta exp(-H(p))), H being the entropy in nats; lossy.

  The draft's law is not read. Of a tree the longest path whose nodes all pass is accepted, the
  first in index order among equals. The extra token is the target's argmax wherever the walk stops:
  it is the paper's greedy first token of the next round, which is accepted without a test, so that
  every round emits at least one token.

  Args:
    epsilon: the threshold where the target is sure of itself, in [0, 1].
    delta: the threshold relative to exp(-H) where it is not, at least 0.

  Raises:
    ValueError: a number outside of its range.
  """
  numbers = (
      number.unrounded("epsilon", epsilon, lambda x: (x >= 0) & (x <= 1), "in [0, 1]"),
      number.unrounded("delta", delta, lambda x: x >= 0, "at least 0"))
  return Rule(
      Partial(_judge, *numbers), lossless=False, coupled=False, serves=ANY, bottom_up=False)


def _judge(epsilon: Array, delta: Array, draft: Draft, log_p: Array) -> Judgement:
  epsilon, delta = (jnp.asarray(number, log_p.dtype) for number in (epsilon, delta))
  # One row at a time, and by its index, so that nothing larger than a row is written.
  rows = jnp.arange(log_p.shape[0], dtype=jnp.int32)
  entropy = lax.map(lambda row: _entropy(log_p[row]), rows)
  threshold = jnp.minimum(epsilon, delta * jnp.exp(-entropy))
  above = draft.parents + 1
  passes = draft.valid & (jnp.exp(log_p[above, draft.tokens]) > threshold[above])
  return Judgement(
      accept=_on_longest_path(draft.parents, passes).astype(log_p.dtype),
      log_next=lambda row: parts.point_mass(argmax(log_p[row]), log_p.shape[1], log_p.dtype))


def _entropy(log_p: Array) -> Array:
  """float[]: -sum p log p in nats."""
  return -total(jnp.where(log_p > -jnp.inf, jnp.exp(log_p) * log_p, 0))


def _on_longest_path(parents: Array, passes: Array) -> Array:
  """bool[N]: whether the walk goes on to the node once it stands on its parent."""
  def raise_parent(heights, node):
    row, parent, passed = node
    height = jnp.where(passed, heights[row] + 1, 0)
    return heights.at[parent + 1].max(height), height

  rows = jnp.arange(1, parents.shape[0] + 1, dtype=jnp.int32)
  start = jnp.zeros(parents.shape[0] + 1, jnp.int32)
  _, height = lax.scan(raise_parent, start, (rows, parents, passes), reverse=True)
  earlier = order.earlier_siblings(parents)
  taller = (earlier & (height[None, :] >= height[:, None])) | (
      earlier.T & (height[None, :] > height[:, None]))
  return passes & ~taller.any(-1)
