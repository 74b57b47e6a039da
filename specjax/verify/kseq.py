"""K-SEQ: k independent drafts of one token, each tried against the same scaled law.

SpecTr: Sun, Suresh, Ro, Beirami, Jain, Yu, NeurIPS 2023, arXiv 2310.15141 (K-SEQ).
"""

from typing import Callable

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.logits import total
from specjax.types import Array, CHAIN, Draft, INDEPENDENT, PATH_NOISE, PATHS
from specjax.verify import checks, parts
from specjax.verify.rule import Judgement, Rule


def kseq() -> Rule:
  """Accepts a child x with probability min(1, p(x) / (rho q(x))), whatever came before it.

  The k valid children of a node must be drawn independently from one law q. With
  b = sum_x min(p / rho, q) and A = 1 - (1 - b)^k, the probability that some child is accepted, the
  extra token has the law [p - min(p / rho, q) A / b] / (1 - A). It is one for rho* <= rho <= k,
  where A(rho*) = rho* b(rho*); the smallest such rho accepts most. It is found by bisection, whose
  upper end is taken: a rho slightly too large costs that much acceptance, one too small the law.
  For k = 1, rho is 1 and the rule is `token`.
  """
  serves = frozenset((CHAIN, INDEPENDENT, PATHS, PATH_NOISE))
  return Rule(Partial(_judge), lossless=True, coupled=False, serves=serves, bottom_up=False)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  nodes = draft.tokens.shape[0]
  rows = jnp.arange(nodes + 1, dtype=jnp.int32)
  below = draft.valid[None, :] & (draft.parents[None, :] + 1 == rows[:, None])
  children = below.sum(-1).astype(log_p.dtype)
  first = jnp.argmax(below, -1)  # speaks for its siblings
  _check_one_law(draft, log_p, first)

  def overlap(row, rho):
    q = jnp.exp(parts.law_of(draft, first[row], log_p))
    return jnp.where(children[row] > 0, jnp.minimum(jnp.exp(log_p[row]) / rho, q), 0)

  rho = _smallest_rho(
      lambda rho: lax.map(lambda row: total(overlap(row, rho[row])), rows), children)

  def log_next(row):
    taken = overlap(row, rho[row])
    once = total(taken)
    share = _some(once, children[row]) / jnp.where(once > 0, once, 1)
    return parts.log_normalised(jnp.maximum(jnp.exp(log_p[row]) - share * taken, 0), log_p[row])

  ratio = parts.log_ratio(
      log_p[draft.parents + 1, draft.tokens], parts.log_q_of_tokens(draft, log_p.dtype))
  ratio = ratio - jnp.log(rho)[draft.parents + 1]
  return Judgement(jnp.where(draft.valid, jnp.exp(jnp.minimum(ratio, 0)), 0), log_next)


def _smallest_rho(overlap: Callable, children: Array) -> Array:
  """rho* float[K], rounded up, for rho -> b(rho) and k = children; no step if k is 1 everywhere."""
  def halve(bracket):
    low, high = bracket
    middle = (low + high) / 2
    once = overlap(middle)
    enough = middle * once >= _some(once, children)
    return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

  def wide(bracket):
    return (bracket[1] - bracket[0] > resolution * bracket[1]).any()

  one = jnp.ones_like(children)
  resolution = 4 * jnp.finfo(children.dtype).eps
  return lax.while_loop(wide, halve, (one, jnp.maximum(children, one)))[1]


def _some(once: Array, tries: Array) -> Array:
  """1 - (1 - once)^tries: the probability that at least one of so many tries succeeds."""
  return jnp.where(tries > 0, -jnp.expm1(tries * jnp.log1p(-jnp.minimum(once, 1))), 0)


def _check_one_law(draft: Draft, log_p: Array, first: Array) -> None:
  log_q = parts.draft_law(draft, log_p.shape[1], log_p.dtype)
  same = (log_q == log_q[first[draft.parents + 1]]).all(-1)
  checks.check_values(
      f"draft.log_q {log_q.shape} gives siblings different laws, and kseq judges independent draws "
      "from one law only; recursive() judges siblings drawn without replacement.",
      same | ~draft.valid)
