"""The cost model against the formulas of the paper and sums by hand."""

import math

import numpy as np
import pytest

from specjax import theory

FREE = theory.Costs(0.02, {width: 1.0 for width in range(1, 9)}, 0.1)  # extra rows cost nothing
REAL = theory.Costs(
    0.02, {1: 1.0, 2: 1.1, 4: 1.3, 8: 1.7}, 0.3, overhead=0.05, plain_overhead=0.02)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 1.0])
def test_free_rows_give_theorem_3_8(alpha):
  for gamma in range(8):
    assert theory.predict(FREE, alpha, gamma) == pytest.approx(
        float(theory.speedup(alpha, gamma, 0.1)), rel=1e-12)
  assert theory.best_gamma(FREE, alpha) == int(theory.optimal_gamma(alpha, 0.1, 7))


def test_a_round_by_hand():
  tokens = 1 + 0.8 + 0.64
  assert theory.predict(REAL, 0.8, 2) == pytest.approx(tokens / ((1.2 + 0.6 + 0.05) / 1.02))
  assert theory.predict(REAL, 0.8, 0) == 1
  assert theory.predict(REAL, 0.8, 2, drafting=0.5) == pytest.approx(
      (tokens / 2 + 0.5) / ((1.1 + 0.6 + 0.05) / 1.02))
  pair = REAL._replace(rows=2)  # three of four rounds have a draft in one of two rows
  assert theory.predict(pair, 0.8, 2, drafting=0.5) == pytest.approx(
      (tokens / 2 + 0.5) / ((0.75 * 1.2 + 0.25 + 0.6 + 0.05) / 1.02))


def test_widths_in_between_are_interpolated_and_others_refused():
  assert theory.window_cost(REAL, 4) == 1.3 and theory.window_cost(REAL, 3) == pytest.approx(1.2)
  with pytest.raises(ValueError, match="measured for 1 to 8 rows, not for 9"):
    theory.predict(REAL, 0.5, 8)


def test_the_best_gamma_is_the_best_and_0_where_nothing_pays():
  for alpha in np.linspace(0, 1, 11):
    speeds = [theory.predict(REAL, alpha, gamma) for gamma in range(8)]
    best = theory.best_gamma(REAL, alpha)
    assert speeds[best] == max(speeds) and max(speeds[:best], default=0) < speeds[best]
  assert theory.best_gamma(REAL, 0.3) == 0 and theory.best_gamma(REAL, 0.95) > 1
  assert theory.best_gamma(REAL, 0.95, drafting=0.0) == 0
  assert theory.best_gamma(REAL, 0.95, most=1) == 1


@pytest.mark.parametrize("drafting", [1.0, 0.6])
def test_at_break_even_the_speed_is_1(drafting):
  for gamma in range(1, 4):
    alpha = theory.break_even(REAL, gamma, drafting)
    assert theory.predict(REAL, alpha, gamma, drafting) == pytest.approx(1, abs=1e-12)
  dear = REAL._replace(draft_step=1.0)
  assert math.isnan(theory.break_even(dear, 1)) and math.isnan(theory.break_even(REAL, 1, 0.0))


def test_no_such_probability():
  with pytest.raises(ValueError, match="drafting"):
    theory.predict(REAL, 0.5, 1, drafting=1.5)
  with pytest.raises(ValueError, match="alpha"):
    theory.predict(REAL, 1.5, 1)
