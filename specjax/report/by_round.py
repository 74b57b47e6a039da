"""Figures of what happens in a round: acceptance by position, and how many tokens come out."""

import math

from specjax.report import cells as cells_lib, figures, parts
from specjax.report.cells import Cell
from specjax.report.parts import Estimate


def acceptance(cells: list[Cell]) -> figures.Figure | figures.Omitted:
  """Acceptance at each position of the longest draft."""
  title = "Acceptance by position in the draft"
  longest = [c for c in _longest(cells) if c.gamma > 1]
  if not longest:
    return figures.Omitted("acceptance", title, "no draft is longer than one token")
  same, groups = cells_lib.constant(cells), []
  panel, label = figures.compared(same)
  for _, shared in figures.grouped(longest, panel):
    panels = []
    for y, values in (("conditional", parts.conditional), ("joint", parts.joint)):
      series = [_numbered(label(c), c, values(c.parts)) for c in shared]
      panels.append(figures.Panel(figures.heading(shared, same), "position", y, series))
    groups.append(panels)
  return figures.Figure(
      "acceptance", "curves", title,
      "Conditional: accepted / tested at each position. Joint: accepted at each position / target "
      "passes. With 95 % bootstrap intervals over prompts." + _which_gamma(cells), groups)


def lengths(cells: list[Cell]) -> figures.Figure | figures.Omitted:
  """How many tokens the rounds emitted."""
  title = "Tokens emitted by a round"
  longest = [c for c in _longest(cells) if c.gamma]
  if not longest:
    return figures.Omitted("lengths", title, "nothing was drafted")
  same = cells_lib.constant(cells)
  panel, label = figures.compared(same)
  groups = [
      [figures.Panel(figures.heading(shared, same), "emitted", "share", [
          _numbered(label(c), c, parts.shares(c.parts)) for c in shared])]
      for _, shared in figures.grouped(longest, panel)]
  return figures.Figure(
      "lengths", "bars", title,
      "Share of the rounds that emitted so many tokens, the extra token counted, with 95 % "
      "bootstrap intervals over prompts. Their mean is tau." + _which_gamma(cells), groups)


def _numbered(label: str, cell: Cell, values: list[Estimate]) -> figures.Series:
  """The values at 1, 2, ... as the series of a cell."""
  points = [figures.Point(cell.axes, Estimate(place), value)
            for place, value in enumerate(values, 1) if not math.isnan(value.value)]
  return figures.Series(label, "measured", points)


def _longest(cells: list[Cell]) -> list[Cell]:
  """Of each method and temperature the cell of the largest gamma."""
  groups = figures.grouped(figures.smallest_batch(cells), lambda c: (c.method, c.temperature))
  return [max(group, key=lambda c: c.gamma) for _, group in groups]


def _which_gamma(cells) -> str:
  several = len({c.gamma for c in cells if c.gamma}) > 1
  return (" Of several gamma the largest is shown." if several else "") + figures.which_batch(cells)
