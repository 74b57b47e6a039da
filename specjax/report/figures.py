"""Figures as numbers, what is plotted against what, and as files: a PNG a page and a CSV."""

import csv
import importlib.util
import itertools
import math
import pathlib
from typing import Any, Callable, Iterable, NamedTuple

from specjax.report import cells as cells_lib
from specjax.report.cells import Cell
from specjax.report.document import Image, Section
from specjax.report.parts import Estimate

FOLDER = "figures"
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
  form: str  # how `draw` draws it: curves, heat, bars or scatter
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

  def method_without_rule(cell):
    return (*(pair for pair in cell.method if pair[0] != "rule"), cell.temperature)

  return method_without_rule, lambda c: dict(c.method).get("rule", "")


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


def write(
    made: list[Figure | Omitted], folder: pathlib.Path) -> tuple[list[Section], list[str]]:
  """Writes `folder`/figures; returns their sections and, a line each, what is left out and why.

  Figures of an earlier report that this one has no numbers for are deleted. Without matplotlib the
  numbers are written and no figure is.
  """
  drawing = importlib.util.find_spec("matplotlib") is not None
  sections, omitted = [], []
  for found in made:
    for stale in (folder / FOLDER).glob(f"{found.name}*"):
      stale.unlink()
    if isinstance(found, Omitted):
      omitted.append(f"{found.title}: left out, {found.why}.")
      continue
    write_csv(folder / FOLDER / f"{found.name}.csv", table(found))
    if drawing:
      sections.append(Section(found.title, _draw(found, folder)))
  if not drawing:
    omitted.append(f"No figure is drawn: that needs matplotlib (pip install matplotlib). Their "
                   f"numbers are in {FOLDER}/*.csv.")
  return sections, omitted


def write_csv(path: pathlib.Path, rows: list[dict[str, Any]]) -> None:
  """Rows under all their keys, in order of appearance; NaN and what a row lacks are empty."""
  head = dict.fromkeys(key for row in rows for key in row)
  path.parent.mkdir(parents=True, exist_ok=True)
  with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
    writer = csv.DictWriter(file, head, lineterminator="\n")
    writer.writeheader()
    for row in rows:
      writer.writerow({k: "" if _is_nan(v) else v for k, v in row.items()})


def _is_nan(value) -> bool:
  return isinstance(value, float) and math.isnan(value)


def _draw(found: Figure, folder: pathlib.Path) -> list[Image]:
  from specjax.report import draw  # matplotlib may be missing

  images = []
  pages = draw.pages(found)
  for number, page in enumerate(pages, 1):
    name = f"{FOLDER}/{found.name}{'' if number == 1 else f'_{number}'}.png"
    (folder / name).write_bytes(page)
    images.append(Image(name, found.title, found.caption if number == len(pages) else ""))
  return images
