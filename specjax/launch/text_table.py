"""A table as Markdown that reads as plain text too."""

import re
from typing import Sequence

_PADDED = 40  # characters to which a column is padded at most; longer cells stick out
_PLAIN_BAR = re.compile(r"(?<!\\)\|")


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
  """The rows under their head, columns of numbers to the right.

  Args:
    head: the name of each column.
    rows: cells, as many in each row as there are columns. A line break becomes a space, and a bar
      that no backslash escapes gets one.

  Raises:
    ValueError: a row has more or fewer cells than the head.
  """
  cells = [[_cell(text) for text in row] for row in (head, *rows)]
  for row in cells:
    if len(row) != len(head):
      raise ValueError(f"a table of {len(head)} columns has a row of {len(row)} cells: {row}")
  columns = list(zip(*cells))
  widths = [min(max(3, *map(len, column)), _PADDED) for column in columns]
  right = [_is_numeric(column[1:]) for column in columns]
  lines = [
      " | ".join(cell.rjust(width) if to_right else cell.ljust(width)
                 for cell, width, to_right in zip(row, widths, right))
      for row in cells]
  rule = " | ".join("-" * (width - 1) + (":" if to_right else "-")
                    for width, to_right in zip(widths, right))
  return "\n".join(f"| {line} |" for line in (lines[0], rule, *lines[1:]))


def _cell(text: str) -> str:
  return _PLAIN_BAR.sub(r"\\|", " ".join(text.split()))


def _is_numeric(column: Sequence[str]) -> bool:
  """Whether every cell begins with a number, as `1.3 (1.2-1.4)` does; `-` and nothing may stand
  where there is none."""
  known = [cell for cell in column if cell not in ("", "-")]
  return bool(known) and all(map(_begins_with_a_number, known))


def _begins_with_a_number(cell: str) -> bool:
  try:
    float(cell.split()[0].rstrip("%:,"))
  except ValueError:
    return False
  return True
