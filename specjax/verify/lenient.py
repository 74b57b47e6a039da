"""Lenience: a drafted token is accepted more often than the target's law allows.

Leviathan, Kalman, Matias, ICML 2023, arXiv 2211.17192, appendix A.5.
"""

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.logits import number
from specjax.types import Array, Draft, Error
from specjax.verify import parts
from specjax.verify.rule import Judgement, Rule
from specjax.verify.token import token

_SMALLEST = 1e-30  # a factor whose logarithm, added to that of q, stays finite in float32


def lenient(factor: float, rule: Rule = token()) -> Rule:
  """Judges with factor * q in place of q; lossy.

  With `token`, X is accepted with probability min(1, p / (factor q)), the residual is that of
  [p - factor q]+, and no token comes out with more than p(x) / factor. A rule that does not read q
  (`greedy`, `match`, `typical`) is left as it is.

  Args:
    factor: the paper's l, in (0, 1]; at 1 the rule is `rule`.
    rule: the rule that judges, not a coupled one.

  Raises:
    Error: a factor outside of (0, 1], or a coupled rule.
  """
  factor = number.unrounded(
      "factor", factor, lambda x: (x >= _SMALLEST) & (x <= 1), f"in [{_SMALLEST}, 1]")
  if rule.coupled:
    raise Error("lenient scales the draft's law, and a coupled rule does not read it.")
  return Rule(
      Partial(_judge, factor, rule), lossless=False, coupled=False, serves=rule.serves,
      bottom_up=rule.bottom_up)


def _judge(factor: Array, rule: Rule, draft: Draft, log_p: Array) -> Judgement:
  log_q = parts.draft_law(draft, log_p.shape[1], log_p.dtype)
  scaled = log_q + jnp.log(jnp.asarray(factor, log_p.dtype))
  return rule.judge(draft._replace(log_q=scaled), log_p)
