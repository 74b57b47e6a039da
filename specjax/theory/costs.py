"""From measured costs and an acceptance probability to the speed of each gamma.

The model is that of `speed`: drafted tokens are accepted independently with probability alpha.
What a round costs is taken from measurements instead of being assumed: the wide pass, the
draft, and what surrounds both.
"""

import math
from typing import NamedTuple

import numpy as np

from specjax.theory import speed
from specjax.types import Error

# The longest draft looked for; with the last token it fills the window of strict mode.
MOST_GAMMA = 7


class Costs(NamedTuple):
  """Costs of one target, drafter and device; but for the first, relative to `pass_seconds`."""

  pass_seconds: float  # the pass of plain decoding over the whole batch
  window: dict[int, float]  # V(n), the pass over n tokens of every row; holds 1: 1.0
  draft_step: float  # c, one draft step
  overhead: float = 0.0  # what a speculative round takes besides passes and drafting
  plain_overhead: float = 0.0  # what a plain round takes besides its pass
  rows: int = 1  # decoded together


def window_cost(costs: Costs, width: int) -> float:
  """V(width), interpolated between measured widths.

  Raises:
    Error: outside of the measured widths.
  """
  widths = sorted(costs.window)
  if not widths[0] <= width <= widths[-1]:
    raise Error(
        f"V was measured for {widths[0]} to {widths[-1]} rows, not for {width}: "
        "there is no cost to predict from.")
  return float(np.interp(width, widths, [costs.window[n] for n in widths]))


def predict(costs: Costs, alpha: float, gamma: int, drafting: float = 1.0) -> float:
  """Speed relative to plain decoding; 1 for gamma = 0.

  Args:
    costs: measured.
    alpha: the probability that a drafted token is accepted.
    gamma: tokens drafted a round.
    drafting: the part of the rounds that have a draft, less than 1 for drafters that may abstain.
      If no row has one, the target scores a single token of each.

  Raises:
    Error: alpha or drafting outside [0, 1], gamma < 0 or beyond the measured widths.
  """
  if gamma == 0:
    return 1.0
  tokens = drafting * float(speed.expected_tokens(alpha, gamma)) + 1 - drafting
  return tokens / _round(costs, gamma, drafting)


def best_gamma(
    costs: Costs, alpha: float, drafting: float = 1.0, most: int = MOST_GAMMA) -> int:
  """The gamma in 0 .. most that `predict` likes best, the smallest among equals."""
  return int(np.argmax([predict(costs, alpha, gamma, drafting) for gamma in range(most + 1)]))


def break_even(costs: Costs, gamma: int, drafting: float = 1.0) -> float:
  """The alpha from which gamma >= 1 is at least as fast as plain decoding; NaN if none is."""
  if drafting == 0:
    return math.nan
  needed = (_round(costs, gamma, drafting) - (1 - drafting)) / drafting
  return float(speed.break_even_alpha(gamma, 0, max(needed, 0)))


def _round(costs: Costs, gamma: int, drafting: float) -> float:
  """The cost of a round relative to a round of plain decoding."""
  if not 0 <= drafting <= 1:
    raise Error(f"drafting must be a part of the rounds, from 0 to 1; got {drafting}.")
  scored = 1 - (1 - drafting) ** costs.rows  # some row has a draft, if rows are independent
  passes = scored * window_cost(costs, gamma + 1) + 1 - scored
  return (passes + gamma * costs.draft_step + costs.overhead) / (1 + costs.plain_overhead)
