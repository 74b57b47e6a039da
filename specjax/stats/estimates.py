"""Estimates with intervals, from what single prompts add to them; host numbers."""

import math
from typing import Callable

import numpy as np

_RESAMPLES = 2000
_MIN_PROMPTS = 5  # a bootstrap over fewer says nothing
_MIN_PASS_SECONDS = 1e-4  # in shorter passes the half millisecond that a call costs would show


def ratio(part, whole) -> float:
  """`part / whole`, NaN where there is nothing to divide by."""
  return float(part / whole) if whole else math.nan


def pass_seconds(measured: float, rate: float, batch_size: int) -> float:
  """Seconds of a plain pass: as measured, else from its tokens/s in all rows; NaN if unknown."""
  return ratio(batch_size, rate) if math.isnan(measured) else measured


def is_timed(seconds: float) -> bool:
  """Whether passes of so many seconds are what a speed-up measures, or the calls around them."""
  return not seconds < _MIN_PASS_SECONDS


def untimed(seconds: float) -> str:
  """Why there is no speed-up where passes take so many seconds."""
  return (f"A pass of this target takes {1e6 * seconds:.0f} microseconds: a time would measure the "
          "calls around it, so speed means nothing here and is left out; look at tau.")


def interval(statistic: Callable[[np.ndarray], float], prompts: int) -> list[float] | None:
  """The 95 % percentile bootstrap interval over prompts; None if there are fewer than five.

  Prompts are what a number should generalise over: tokens of one answer are far from independent.

  Args:
    statistic: int[M] indices of drawn prompts -> the number, or NaN where it has none;
      such draws are left out.
    prompts: how many there are.
  """
  if prompts < _MIN_PROMPTS:
    return None
  draws = np.random.default_rng(0).integers(prompts, size=(_RESAMPLES, prompts))
  values = np.array([statistic(drawn) for drawn in draws])
  values = values[np.isfinite(values)]
  return [float(bound) for bound in np.quantile(values, (0.025, 0.975))] if len(values) else None
