"""The axes of a sweep: from flags and configuration files to the points of a grid.

A grid is a list of groups. A group maps axes to their values, which move together, and the points
are the product of the groups. An axis by itself is a group of one.
"""

import itertools
from typing import Mapping, Sequence

from specjax.launch.config import AXES, FIELDS
from specjax.launch.errors import nearest
from specjax.types import Error

TOGETHER = "zip"  # the entry of a configuration that holds groups of more than one axis

Grid = list[dict[str, list]]


def from_flags(texts: Mapping[str, Sequence[str]]) -> Grid:
  """The grid of flags: for each axis that was given, the texts of its flag.

  Raises:
    Error: an empty value.
  """
  return [{axis: _values(axis, each)} for axis, each in texts.items()]


def from_config(entry: Mapping, source: str) -> Grid:
  """The grid of the entry `sweep` of a configuration file.

      sweep=dict(
          temperature=(0.0, 0.6),                                    # in product with the rest
          zip=[dict(drafter=("ngram", "layer_skip:10"), gamma=(7, 3))])        # move together

  Raises:
    Error: no such axis, one that is named twice, one that is no list, groups whose axes differ
      in length; names `source` and the axis.
  """
  if not isinstance(entry, Mapping):
    raise Error(f"{source}: sweep is a dict of axes, got {entry!r:.80}")
  entry = dict(entry)
  together = entry.pop(TOGETHER, ())
  if not isinstance(together, (list, tuple)) or not all(
      isinstance(group, Mapping) and group for group in together):
    raise Error(f"{source}: sweep.{TOGETHER} is a list of groups, each a dict of axes")
  grid = [{axis: entry[axis]} for axis in entry] + [dict(group) for group in together]
  for axis, values in itertools.chain.from_iterable(group.items() for group in grid):
    if axis not in AXES:
      raise Error(f"{source}: sweep has an unknown axis {axis!r}{nearest(str(axis), AXES)}")
    if not isinstance(values, (list, tuple)):
      raise Error(f"{source}: sweep.{axis} is a list of values, got {values!r}")
  named = [axis for group in grid for axis in group]
  for axis in named:
    if named.count(axis) > 1:
      raise Error(f"{source}: sweep names the axis {axis!r} more than once")
  for group in grid:
    if len(set(map(len, group.values()))) > 1:
      lengths = ", ".join(f"{axis} has {len(values)}" for axis, values in group.items())
      raise Error(f"{source}: axes that move together have equally many values; {lengths}")
  return [{axis: list(values) for axis, values in group.items()} for group in grid]


def replace(grid: Grid, flags: Grid) -> Grid:
  """`grid` with the axes of `flags` in place of its own.

  Raises:
    Error: an axis of `flags` moves together with others in `grid`.
  """
  given = {axis for group in flags for axis in group}
  for group in grid:
    for axis in given & set(group):
      if len(group) > 1:
        raise Error(
            f"the axis {axis!r} moves together with {', '.join(sorted(set(group) - {axis}))} in "
            "the configuration file, so a flag cannot replace it: change the file")
  return [group for group in grid if not given & set(group)] + flags


def points(grid: Grid) -> list[dict]:
  """Every point of the grid as {axis: value}; the axes that stand first in `AXES` change last.

  Raises:
    Error: an axis without values.
  """
  for group in grid:
    for axis, values in group.items():
      if not values:
        raise Error(f"the axis {axis!r} has no values, so the grid is empty")
  ordered = sorted(grid, key=lambda group: min(map(AXES.index, group), default=0))
  steps = [[dict(zip(group, step)) for step in zip(*group.values())] for group in ordered]
  return [
      {axis: value for step in point for axis, value in step.items()}
      for point in itertools.product(*steps)]


def _values(axis: str, texts: Sequence[str]) -> list:
  """The values in the texts of one flag.

  Commas separate them. A number behind a comma belongs to the NAME:NUMBER before it, so that
  `token,typical:0.09,0.3` are two rules.
  """
  found = []
  for piece in (piece.strip() for text in texts for piece in text.split(",")):
    if not piece:
      raise Error(f"the axis {axis!r} has an empty value in {','.join(texts)!r}")
    if found and ":" in found[-1] and not isinstance(_number(piece), str):
      found[-1] += f",{piece}"
    else:
      found.append(piece)
  read = FIELDS[axis].parse if axis in FIELDS else {"seed": _number, "prompts": str}[axis]
  return [read(piece) for piece in found]


def _number(text: str) -> int | float | str:
  """The number that a text gives; the text itself is for `DecodeConfig` to accept or refuse."""
  for kind in (int, float):
    try:
      return kind(text)
    except ValueError:
      pass
  return text
