"""Ratios and bootstrap intervals of host numbers."""

import math

import numpy as np
import pytest

from specjax.stats import estimates


def test_nothing_to_divide_by_is_nan():
  assert estimates.ratio(3, 4) == 0.75 and math.isnan(estimates.ratio(3, 0))


def test_too_few_prompts_have_no_interval():
  assert estimates.interval(lambda drawn: 1.0, 4) is None
  assert estimates.interval(lambda drawn: 1.0, 5) == [1.0, 1.0]


def test_the_interval_of_a_mean_is_that_of_the_normal_law():
  values = np.random.default_rng(1).normal(size=400)
  low, high = estimates.interval(lambda drawn: values[drawn].mean(), 400)
  half = 1.96 * values.std() / 20
  assert low == pytest.approx(values.mean() - half, abs=0.015)
  assert high == pytest.approx(values.mean() + half, abs=0.015)


def test_draws_without_a_value_are_left_out():
  def statistic(drawn):
    return math.nan if 0 in drawn else 2.0

  assert estimates.interval(statistic, 5) == [2.0, 2.0]
  assert estimates.interval(lambda drawn: math.nan, 5) is None
