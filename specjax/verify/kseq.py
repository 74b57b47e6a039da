"""K-SEQ: k independent drafts of one token, each tried against the same scaled law.

SpecTr: Sun, Suresh, Ro, Beirami, Jain, Yu, NeurIPS 2023, arXiv 2310.15141, algorithm 3.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.types import Array, Draft
from specjax.verify import checks, parts, walk
from specjax.verify.rule import Judgement, Rule


def kseq() -> Rule:
  """Accepts a child x with probability min(1, p(x) / (rho q(x))), whatever its earlier siblings were.

  The k valid children of a node must be drawn independently from one law q. With
  b = sum_x min(p / rho, q) and A = 1 - (1 - b)^k, the probability that some child is accepted, the
  extra token has the law [p - min(p / rho, q) A / b] / (1 - A). It is one for rho* <= rho <= k, where
  A(rho*) = rho* b(rho*); the smallest such rho accepts most. It is found by bisection, whose upper
  end is taken: a rho slightly too large costs that much acceptance, one too small costs the law.
  For k = 1, rho is 1 and the rule is `token`.
  """
  return Rule(Partial(_judge), lossless=True, coupled=False, trees=True, bottom_up=False)


def _judge(draft: Draft, log_p: Array) -> Judgement:
  nodes = draft.tokens.shape[0]
  if nodes == 0:
    return Judgement(jnp.zeros(0, log_p.dtype), lambda row: log_p[row])
  log_q = parts.draft_law(draft, log_p.shape[1], log_p.dtype)
  below = draft.valid[None, :] & (
      draft.parents[None, :] == jnp.arange(-1, nodes, dtype=jnp.int32)[:, None])
  children = below.sum(-1).astype(log_p.dtype)
  first = jnp.argmax(below, -1)  # speaks for its siblings
  _check_one_law(draft, log_q, first)
  rho = _smallest_rho(log_p, log_q[first], children)
  ratio = parts.log_ratio(
      log_p[draft.parents + 1, draft.tokens], parts.log_q_of_tokens(draft, log_p.dtype))
  ratio = ratio - jnp.log(rho)[draft.parents + 1]

  def log_next(row):
    p, q = jnp.exp(log_p[row]), jnp.exp(log_q[first[row]])
    overlap = jnp.where(children[row] > 0, jnp.minimum(p / rho[row], q), 0)
    once = overlap.sum()
    share = _some(once, children[row]) / jnp.where(once > 0, once, 1)
    return parts.log_normalised(jnp.maximum(p - share * overlap, 0), log_p[row])

  return Judgement(jnp.where(draft.valid, jnp.exp(jnp.minimum(ratio, 0)), 0), log_next)


def _smallest_rho(log_p: Array, log_q: Array, children: Array) -> Array:
  """float[K]: rho* for rows of p and q float[K, V] and k = children float[K], rounded up."""
  def gap(rho):
    overlap = jnp.minimum(jnp.exp(log_p) / rho[:, None], jnp.exp(log_q)).sum(-1)
    return rho * overlap - _some(overlap, children)  # increasing in rho, and >= 0 from rho* on

  def halve(bracket):
    low, high = bracket
    middle = (low + high) / 2
    enough = gap(middle) >= 0
    return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

  one = jnp.ones_like(children)
  resolution = 4 * jnp.finfo(children.dtype).eps
  wide = lambda bracket: (bracket[1] - bracket[0] > resolution * bracket[1]).any()
  return lax.while_loop(wide, halve, (one, jnp.maximum(children, one)))[1]


def _some(once: Array, tries: Array) -> Array:
  """1 - (1 - once)^tries: the probability that at least one of so many tries succeeds."""
  return jnp.where(tries > 0, -jnp.expm1(tries * jnp.log1p(-jnp.minimum(once, 1))), 0)


def _check_one_law(draft: Draft, log_q: Array, first: Array) -> None:
  same = (log_q == log_q[first[draft.parents + 1]]).all(-1)
  checks.check_values(
      f"draft.log_q {log_q.shape} gives siblings different laws, and kseq judges independent draws "
      "from one law only; recursive() judges siblings drawn without replacement.",
      same | ~draft.valid)
