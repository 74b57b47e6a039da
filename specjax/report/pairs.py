"""Figures that hold two numbers of one setting against each other."""

import math
import statistics

import numpy as np

from specjax.report import cells as cells_lib, figures
from specjax.report.cells import Cell
from specjax.report.parts import Estimate


def gumbel(cells: list[Cell]) -> figures.Figure | figures.Omitted:
  """alpha of Gumbel coupling against alpha of the maximal coupling, with the bound between them."""
  title = "Acceptance of Gumbel coupling against maximal coupling"
  found = [(token, coupled) for token in cells if token.axes.get("rule") == "token"
           for coupled in cells if coupled.axes == token.axes | {"rule": "gumbel"}
           and not math.isnan(token.alpha.value + coupled.alpha.value)]
  if not found:
    return figures.Omitted(
        "gumbel", title, "no two cells differ in their rule alone, gumbel and token")
  series = []
  for temperature in sorted({token.temperature for token, _ in found}):
    series.append(figures.Series(figures.at_temperature(temperature), "measured", [
        figures.Point({k: v for k, v in token.axes.items() if k != "rule"},
                     token.alpha, coupled.alpha)
        for token, coupled in found if token.temperature == temperature]))
  at = np.linspace(0, 1, 51)
  series.append(_line("1 - TV", at, at))
  series.append(_line("(1 - TV) / (1 + TV)", at, at / (2 - at)))
  return figures.Figure(
      "gumbel", "scatter", title,
      "Each point is one setting under both rules. With TV = 1 - alpha of token, whose coupling is "
      "maximal, Gumbel coupling accepts at least (1 - TV) / (1 + TV) and at most 1 - TV of the "
      "drafts of one position (Daliri, Musco and Suresh 2024). The two rules write different "
      "texts, so a point may lie a little outside.",
      [[figures.Panel("", "alpha_token", "alpha_gumbel", series)]])


def predicted(cells: list[Cell]) -> figures.Figure | figures.Omitted:
  """The measured speed-up against the one that tau and the measured costs predict."""
  title = "Measured against predicted speed-up"
  found = [c for c in cells if not math.isnan(c.predicted + c.speedup.value)]
  if not found:
    why = "no cell has measured costs" if figures.timed(cells) else figures.UNTIMED
    return figures.Omitted("predicted", title, why)
  errors = [abs(c.predicted / c.speedup.value - 1) for c in found if c.speedup.value]
  same = cells_lib.constant(cells)
  series = [
      figures.Series(name, "measured", [
          figures.Point(c.axes, Estimate(c.predicted), c.speedup) for c in some])
      for name, some in figures.grouped(found, lambda c: _named(c, same))]
  ends = np.array([0.0, 1.1 * max(max(c.predicted, c.speedup.value) for c in found)])
  series.append(_line("equal", ends, ends))
  stated = "" if not errors else (
      f" Relative error of the prediction: median {statistics.median(errors):.0%}, largest "
      f"{max(errors):.0%}, over {len(errors)} cells.")
  return figures.Figure(
      "predicted", "scatter", title,
      "Predicted: tau / (V(N + 1) + s c) for N drafted tokens in s steps, all measured; V = 1 in "
      f"rounds without a draft where those are passes over one row.{stated}",
      [[figures.Panel("", "predicted_speedup", "measured_speedup", series)]])


def _named(cell: Cell, same: dict[str, str]) -> str:
  """The temperature, behind what else of drafter and rule is not the same for all."""
  differ = [name for name in ("drafter", "rule") if name not in same]
  return ", ".join([*(dict(cell.method).get(name, "") for name in differ),
                    figures.at_temperature(cell.temperature)])


def _line(label: str, x: np.ndarray, y: np.ndarray) -> figures.Series:
  points = [figures.Point({}, Estimate(float(a)), Estimate(float(b))) for a, b in zip(x, y)]
  return figures.Series(label, "line", points)
