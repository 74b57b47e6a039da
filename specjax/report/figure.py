"""A figure as numbers: what is plotted against what, before anything is drawn."""

import itertools
import math
from typing import Any, Callable, Iterable, NamedTuple

from specjax.report import cells as cells_lib
from specjax.report.cells import Cell
from specjax.report.parts import Estimate

UNTIMED = "no pass takes long enough to be timed"  # why there is no figure of speeds


class Point(NamedTuple):
  axes: dict[str, Any]  # its cell's
  x: Estimate
  y: Estimate


class Series(NamedTuple):
  """Points of one colour and kind."""

  label: str
  kind: str  # measured, theory, predicted, plain; or a line that no cell belongs to
  points: list[Point]


class Panel(NamedTuple):
  """One pair of axes."""

  title: str
  x: str  # name of what is plotted, as in the CSV
  y: str
  series: list[Series]


class Figure(NamedTuple):
  """Groups of panels; the panels of a group stand together."""

  name: str  # of its files
  form: str  # how `plots` draws it: curves, heat, bars or scatter
  title: str
  caption: str
  groups: list[list[Panel]]


class Omitted(NamedTuple):
  """A figure that the rows have no numbers for."""

  name: str
  title: str
  why: str


def table(figure: Figure) -> list[dict[str, Any]]:
  """Every number of a figure in long form, one point a row."""
  rows = []
  for panel in itertools.chain.from_iterable(figure.groups):
    for series in panel.series:
      for point in series.points:
        bounds = {} if math.isnan(point.x.low) else {
            f"{panel.x}_low": point.x.low, f"{panel.x}_high": point.x.high}
        rows.append(point.axes | {
            "series": series.label, "kind": series.kind, panel.x: point.x.value} | bounds | {
            "quantity": panel.y, "value": point.y.value, "low": point.y.low, "high": point.y.high})
  return rows


def drafters(figure: Figure) -> int:
  """How many drafters its points come from."""
  return len({str(row.get("drafter")) for row in table(figure) if row["kind"] == "measured"})


def grouped(cells: Iterable[Cell], key) -> list[tuple[Any, list[Cell]]]:
  """Cells by key, in the order of their first."""
  groups: dict[Any, list[Cell]] = {}
  for cell in cells:
    groups.setdefault(key(cell), []).append(cell)
  return list(groups.items())


def curve(
    label: str, kind: str, cells: list[Cell], y: Callable[[Cell], Estimate],
    x: str = "gamma") -> Series:
  """The series of y(cell) over an axis of the cells, without those that have no such number."""
  points = [Point(c.axes, Estimate(c.axes[x]), y(c)) for c in cells]
  return Series(label, kind, [point for point in points if not math.isnan(point.y.value)])


def at_temperature(value: float) -> str:
  """The label of a temperature's series."""
  return f"T = {value:g}"


def smallest_batch(cells: list[Cell]) -> list[Cell]:
  """The cells of each method at its smallest batch size, which changes nothing about acceptance."""
  return [c for _, method in grouped(cells, lambda c: c.method)
          for c in method if c.batch_size == min(c.batch_size for c in method)]


def compared(same: dict[str, str]) -> tuple[Callable[[Cell], Any], Callable[[Cell], str]]:
  """What has a panel of its own, and the label of the curves in it.

  Where several rules were run their difference is the question, so they share a panel, and each
  temperature has its own; else the temperatures of a method share one.
  """
  if "rule" in same:
    return lambda c: c.method, lambda c: at_temperature(c.temperature)
  others = lambda c: [pair for pair in c.method if pair[0] != "rule"]
  return lambda c: (*others(c), c.temperature), lambda c: dict(c.method).get("rule", "")


def heading(cells: list[Cell], same: dict[str, str]) -> str:
  """The title of a panel that `compared` gave these cells."""
  if "rule" in same:
    return cells_lib.label(cells[0], same)
  name = cells_lib.label(cells[0], same, ("drafter",))
  return name if "temperature" in same else f"{name}, {at_temperature(cells[0].temperature)}"


def timed(cells: list[Cell]) -> list[Cell]:
  """The cells that have a speed."""
  return [c for c in cells if c.timed]


def which_batch(cells: list[Cell]) -> str:
  """What the caption of a figure of `smallest_batch` says about it."""
  several = len({c.batch_size for c in cells}) > 1
  return " Of several batch sizes the smallest is shown." if several else ""
