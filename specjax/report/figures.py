"""All figures of a report as files: a PNG of each page and every number in a CSV."""

import csv
import importlib.util
import math
import pathlib
from typing import Any

from specjax.report import by_batch, by_gamma, by_round, figure, pairs
from specjax.report.cells import Cell
from specjax.report.document import Image, Section

FOLDER = "figures"
_ALL = (
    by_gamma.speedup, by_gamma.tau_alpha, by_round.acceptance, by_round.lengths, pairs.gumbel,
    pairs.predicted, by_batch.batch)


def write(cells: list[Cell], folder: pathlib.Path) -> tuple[list[Section], list[str]]:
  """Writes `folder`/figures, and returns its sections and, a line each, what is left out and why.

  Figures of an earlier report that this one has no numbers for are deleted. Without matplotlib the
  numbers are written and no figure is.
  """
  drawing = importlib.util.find_spec("matplotlib") is not None
  sections, omitted = [], []
  for found in (make(cells) for make in _ALL):
    for stale in (folder / FOLDER).glob(f"{found.name}*"):
      stale.unlink()
    if isinstance(found, figure.Omitted):
      omitted.append(f"{found.title}: left out, {found.why}.")
      continue
    write_csv(folder / FOLDER / f"{found.name}.csv", figure.table(found))
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


def _draw(found: figure.Figure, folder: pathlib.Path) -> list[Image]:
  from specjax.report import plots

  images = []
  pages = plots.draw(found)
  for number, page in enumerate(pages, 1):
    name = f"{FOLDER}/{found.name}{'' if number == 1 else f'_{number}'}.png"
    (folder / name).write_bytes(page)
    images.append(Image(name, found.title, found.caption if number == len(pages) else ""))
  return images
