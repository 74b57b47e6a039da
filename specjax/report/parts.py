"""What single prompts add to the sums of a cell, and the estimates that are taken from the sums."""

import math
from typing import NamedTuple, Sequence

import numpy as np

from specjax.stats import estimates

Numbers = np.ndarray
BY_DEPTH = ("tested", "accepted", "lengths")  # those of `Parts` that are lists


class Estimate(NamedTuple):
  """A number, its 95 % bootstrap interval over prompts, and its mean over prompts; NaN if none."""

  value: float  # micro: the ratio of sums
  low: float = math.nan
  high: float = math.nan
  macro: float = math.nan


class Parts(NamedTuple):
  """Sums of P answers, seeds added up; float64, of drafts of depth D."""

  category: Numbers  # str[P]
  tokens: Numbers  # [P]
  seconds: Numbers  # [P]
  baseline_tokens: Numbers  # [P], plain decoding
  baseline_seconds: Numbers  # [P]
  rounds: Numbers  # [P]
  emitted: Numbers  # [P]
  drafting: Numbers  # [P], rounds that had a draft
  tested: Numbers  # [P, D]
  accepted: Numbers  # [P, D]
  lengths: Numbers  # [P, D + 1], rounds that emitted 1, 2, ..., D + 1 tokens

  def of(self, category: str) -> "Parts":
    """The answers of one category."""
    return Parts(*(field[self.category == category] for field in self))


def speedup(parts: Parts) -> Estimate:
  """Plain seconds per token / speculative seconds per token."""
  return _estimate(
      [parts.baseline_seconds, parts.tokens], [parts.baseline_tokens, parts.seconds])


def tau(parts: Parts) -> Estimate:
  """Tokens emitted / target passes."""
  return _estimate([parts.emitted], [parts.rounds])


def alpha(parts: Parts) -> Estimate:
  """Drafted tokens accepted / tested."""
  return _estimate([parts.accepted.sum(1)], [parts.tested.sum(1)])


def rate(parts: Parts) -> Estimate:
  """Tokens/s, speculative."""
  return _estimate([parts.tokens], [parts.seconds])


def conditional(parts: Parts) -> list[Estimate]:
  """Accepted / tested at each position."""
  return [_estimate([a], [t]) for a, t in zip(parts.accepted.T, parts.tested.T)]


def joint(parts: Parts) -> list[Estimate]:
  """Accepted at each position / target passes."""
  return [_estimate([a], [parts.rounds]) for a in parts.accepted.T]


def shares(parts: Parts) -> list[Estimate]:
  """The share of rounds that emitted 1, 2, ..., D + 1 tokens."""
  return [_estimate([rounds], [parts.lengths.sum(1)]) for rounds in parts.lengths.T]


def _estimate(above: Sequence[Numbers], below: Sequence[Numbers]) -> Estimate:
  """The product of the sums `above` / the product of the sums `below`, each float64[P]."""
  table = np.stack([*above, *below], axis=1)

  def statistic(drawn):
    sums = table[drawn].sum(0)
    return estimates.ratio(sums[:len(above)].prod(), sums[len(above):].prod())

  everyone = np.arange(len(table))
  single = [value for i in everyone if not math.isnan(value := statistic([i]))]
  low, high = estimates.interval(statistic, len(table)) or (math.nan, math.nan)
  return Estimate(
      statistic(everyone), low, high, float(np.mean(single)) if single else math.nan)
