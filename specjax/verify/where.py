"""One rule for some rows, another for the others."""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.trees import order
from specjax.types import Array, Draft, Error
from specjax.verify import walk
from specjax.verify.rule import Judgement, Rule


def where(mask: Array, rule_a: Rule, rule_b: Rule) -> Rule:
  """Judges a row by `rule_a` where the mask is true and by `rule_b` where it is false.

  It serves what both of them serve. Both formulas are computed for every row, since a batch is one
  program. If one rule walks top down and the other bottom up, the first is told in the terms of the
  second: what counts is only where it stops.

  Args:
    mask: bool[], or bool[B] for a batch whose rows are mapped over; chosen without regard to the
      draft.
    rule_a: one rule.
    rule_b: the other; coupled if and only if `rule_a` is.

  Raises:
    Error: a mask that is not boolean, or a coupled rule beside one that flips coins: the first
      wants the keys of positions, the second that of the round.
  """
  mask = jnp.asarray(mask)
  if mask.dtype != bool:
    raise Error(f"where takes a mask bool[] or bool[B], got {mask.dtype}{mask.shape}.")
  if rule_a.coupled != rule_b.coupled:
    raise Error(
        "where cannot mix a coupled rule with one that flips coins: the first reads the keys of "
        "positions, the second the key of the round.")
  return Rule(
      Partial(_follow if rule_a.coupled else _judge, mask, rule_a, rule_b),
      lossless=rule_a.lossless and rule_b.lossless,
      coupled=rule_a.coupled,
      serves=rule_a.serves & rule_b.serves,
      bottom_up=rule_a.bottom_up or rule_b.bottom_up)


def _judge(mask: Array, rule_a: Rule, rule_b: Rule, draft: Draft, log_p: Array) -> Judgement:
  (accept_a, next_a), (accept_b, next_b) = (
      rule.judge(draft, log_p) for rule in (rule_a, rule_b))
  if rule_a.bottom_up and not rule_b.bottom_up:
    accept_b = _bottom_up(draft, accept_b)
  if rule_b.bottom_up and not rule_a.bottom_up:
    accept_a = _bottom_up(draft, accept_a)
  return Judgement(
      accept=jnp.where(mask, accept_a, accept_b),
      log_next=lambda row: jnp.where(mask, next_a(row), next_b(row)))


def _follow(mask: Array, rule_a: Rule, rule_b: Rule, keys: Array, draft: Draft, log_p: Array):
  ends = (rule.formula(keys, draft, log_p) for rule in (rule_a, rule_b))
  return jax.tree.map(lambda a, b: jnp.where(mask, a, b), *ends)


def _bottom_up(draft: Draft, accept: Array) -> Array:
  """float[N]: the coins of a bottom-up walk that stops where a top-down one with `accept` does.

  A node that comes up in post-order is accepted with the probability that the walk stops there,
  given that it does not stop at a node that came up before.
  """
  stops = walk.stops_top_down(draft.parents, jnp.where(draft.valid, accept, 0))
  places = order.post_order(draft.parents)
  not_before = places[None, :] >= places[:, None]
  possible = stops[0] + jnp.where(not_before, stops[None, 1:], 0).sum(-1)
  return jnp.where(possible > 0, stops[1:] / jnp.where(possible > 0, possible, 1), 0)
