"""The rows of a sweep as cells: one for each setting, summed over its seeds."""

import collections
import json
import math
from typing import Any, NamedTuple

import numpy as np

from specjax import theory
from specjax.report import parts as parts_lib
from specjax.report.parts import Estimate, Parts
from specjax.report.rows import AXES, Reading, SUMMED, text
from specjax.stats import estimates

_NUMBERS = ("temperature", "gamma", "batch_size")
_NONE = Estimate(math.nan)
_LONGEST = 22  # characters of a value in a label; tables have the whole


class Cell(NamedTuple):
  """One setting of a sweep and its numbers."""

  axes: dict[str, Any]
  seeds: int
  parts: Parts
  speedup: Estimate  # NaN, as `predicted` is, if the cell is not timed
  tau: Estimate
  alpha: Estimate
  rate: Estimate  # tokens/s
  baseline_rate: float  # of plain decoding, in turn with the above
  pass_seconds: float  # of plain decoding
  predicted: float  # speed-up
  identical: bool | None  # to plain decoding; None if the two are independent samples

  @property
  def gamma(self) -> int:
    return self.axes["gamma"]

  @property
  def temperature(self) -> float:
    return self.axes["temperature"]

  @property
  def batch_size(self) -> int:
    return self.axes["batch_size"]

  @property
  def timed(self) -> bool:
    """Whether its passes are long enough for a speed-up to say something."""
    return estimates.is_timed(self.pass_seconds)

  def speedup_of(self, category: str) -> Estimate:
    """The speed-up on the prompts of a category."""
    return parts_lib.speedup(self.parts.of(category)) if self.timed else _NONE

  @property
  def method(self) -> tuple[tuple[str, str], ...]:
    """What is compared: the axes that are no numbers to plot against, as (name, text)."""
    return tuple((name, text(value)) for name, value in self.axes.items() if name not in _NUMBERS)


def pool(readings: list[Reading]) -> list[Cell]:
  """One cell for each setting, numbers ascending, texts in the order of their first rows.

  Drafters change fastest, then rules, so that panels of all methods have drafters side by side.
  """
  groups = collections.defaultdict(list)
  for reading in readings:
    groups[json.dumps(reading.axes, sort_keys=True)].append(reading)
  cells = [_cell(group) for group in groups.values()]
  place = {pair: number for number, pair in enumerate(
      dict.fromkeys(pair for cell in cells for pair in cell.method))}
  fast = lambda pair: (pair[0] == "drafter", pair[0] == "rule")
  slow_first = lambda cell: [place[pair] for pair in sorted(cell.method, key=fast)]
  return sorted(
      cells, key=lambda c: (slow_first(c), c.temperature, c.batch_size, c.gamma))


def best(cells: list[Cell]) -> Cell:
  """The fastest of the cells; where none has a speed, the one of the largest tau."""
  merit = lambda c: (c.timed, *(-1 if math.isnan(v) else v for v in (c.speedup.value, c.tau.value)))
  return max(cells, key=merit)


def constant(cells: list[Cell]) -> dict[str, str]:
  """The axes that have one value in all cells, as texts."""
  names = dict.fromkeys((*AXES, *(name for cell in cells for name in cell.axes)))
  values = {name: {text(cell.axes.get(name, "")) for cell in cells} for name in names}
  return {name: found.pop() for name, found in values.items() if len(found) == 1}


def label(cell: Cell, same: dict[str, str], first: tuple[str, ...] = ("drafter", "rule")) -> str:
  """A short name of a cell's method: what comes `first`, and what is not the `same` for all."""
  method = dict(cell.method)
  rest = [f"{name}={shorten(value)}" for name, value in method.items()
          if name not in ("drafter", "rule", *same)]
  return ", ".join([*(shorten(method.get(name, "")) for name in first), *rest])


def shorten(name: str) -> str:
  """A name as a short line: what is in the middle of a long one is left out."""
  line = " ".join("".join(c if c.isprintable() else " " for c in name).split())
  half = _LONGEST // 2
  return line if len(line) <= _LONGEST else f"{line[:half - 1]}…{line[-half:]}"


def _cell(group: list[Reading]) -> Cell:
  parts = _sum(group)
  tau, identical = parts_lib.tau(parts), [reading.identical for reading in group]
  rate = estimates.ratio(parts.baseline_tokens.sum(), parts.baseline_seconds.sum())
  measured = float(np.mean([reading.pass_seconds for reading in group]))
  cell = Cell(
      group[0].axes, len(group), parts, parts_lib.speedup(parts), tau, parts_lib.alpha(parts),
      parts_lib.rate(parts), rate,
      estimates.pass_seconds(measured, rate, group[0].axes["batch_size"]),
      _predicted(group, tau.value), None if None in identical else all(identical))
  return cell if cell.timed else cell._replace(speedup=_NONE, predicted=math.nan)


def _sum(group: list[Reading]) -> Parts:
  """The parts of every answer, added up over seeds."""
  summed = {}
  for reading in group:
    for key, fields in reading.answers.items():
      earlier = summed.get(key)
      summed[key] = fields if earlier is None else [
          _stack(pair).sum(0) for pair in zip(earlier, fields)]
  *scalars, tested, accepted, lengths = (_stack(column) for column in zip(*summed.values()))
  return Parts(
      np.array([category for _, category, *_ in summed]), *(column[:, 0] for column in scalars),
      tested, accepted, lengths)


def _stack(rows) -> np.ndarray:
  """float[len(rows), longest], shorter rows filled up with zeros."""
  width = max(map(len, rows))
  return np.stack([np.pad(row, (0, width - len(row))) for row in rows])


def _predicted(group: list[Reading], tau: float) -> float:
  """The speed-up that tau and the measured costs give, costs averaged over the seeds."""
  place = SUMMED.index("rounds")
  rounds = [sum(float(fields[place][0]) for fields in reading.answers.values())
            for reading in group]
  if not sum(rounds):
    return math.nan
  mean = lambda name, weights=None: float(
      np.average([getattr(reading, name) for reading in group], weights=weights))
  drafting, step, steps = mean("drafting", rounds), mean("draft_step"), mean("steps", rounds)
  cost = drafting * mean("window") + 1 - drafting
  if not all(map(math.isfinite, (tau, step, steps, cost))) or not cost:
    return math.nan
  return float(theory.predicted_speedup(tau, steps, step, cost))
