"""What a report is made of, before it is Markdown or HTML. All text is plain: renderers escape."""

import math
from typing import NamedTuple

from specjax.report.parts import Estimate


class Text(NamedTuple):
  """A paragraph."""

  text: str


class Code(NamedTuple):
  """A command, or what a program wrote."""

  text: str


class Table(NamedTuple):
  """Rows under a head; values as `show` takes them."""

  head: list[str]
  rows: list[list]


class Image(NamedTuple):
  """A PNG of the report's folder."""

  path: str  # relative, with forward slashes
  title: str  # what one sees, in a line
  caption: str


class Section(NamedTuple):
  """Blocks under a title."""

  title: str
  blocks: list[Text | Code | Table | Image]


class Document(NamedTuple):
  title: str
  sections: list[Section]


def show(value) -> str:
  """A value as a reader sees it: two decimals below ten, its interval in brackets, - for none."""
  if isinstance(value, Estimate):
    bounds = "" if math.isnan(value.low) else f" ({show(value.low)}-{show(value.high)})"
    return show(value.value) + bounds
  if isinstance(value, bool):
    return "yes" if value else "NO"
  if value is None or isinstance(value, float) and math.isnan(value):
    return "-"
  if isinstance(value, float):
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
  return str(value)


def numeric(table: Table) -> list[bool]:
  """Which columns hold numbers, as values or as texts, and nothing else."""
  return [bool(column) and all(map(_is_number, column)) for column in (
      [row[place] for row in table.rows] for place in range(len(table.head)))]


def sort_key(value) -> float | str | None:
  """What a table sorts by: the number, if there is one."""
  if isinstance(value, Estimate):
    value = value.value
  if value is None or isinstance(value, float) and math.isnan(value):
    return None
  return float(value) if isinstance(value, (int, float)) else str(value)


def _is_number(value) -> bool:
  try:
    return not isinstance(value, str) or math.isfinite(float(value))
  except ValueError:
    return False
