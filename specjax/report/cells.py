"""The rows of a sweep as cells: one for each setting, summed over its seeds."""

import collections
import json
import math
from typing import Any, NamedTuple

import numpy as np

from specjax import theory
from specjax.launch.result import Result
from specjax.report import parts as parts_lib
from specjax.report.parts import Estimate, Parts
from specjax.report.rows import Reading, text
from specjax.stats import estimates

_NUMBERS = ("temperature", "gamma", "batch_size")
_NONE = Estimate(math.nan)
_SUMMED = tuple(name for name in Parts._fields if name != "category")  # of each answer
_MAX_LABEL = 22  # characters of a value in a label; tables have the whole


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

  def places(cell):
    slow_first = sorted(cell.method, key=lambda pair: (pair[0] == "drafter", pair[0] == "rule"))
    return [place[pair] for pair in slow_first]

  return sorted(cells, key=lambda c: (places(c), c.temperature, c.batch_size, c.gamma))


def best(cells: list[Cell]) -> Cell:
  """The fastest of the cells; where none has a speed, the one of the largest tau."""

  def merit(cell):
    values = (cell.speedup.value, cell.tau.value)
    return (cell.timed, *(-1 if math.isnan(value) else value for value in values))

  return max(cells, key=merit)


def constant(cells: list[Cell]) -> dict[str, str]:
  """The axes that have one value in all cells, as texts."""
  names = dict.fromkeys(name for cell in cells for name in cell.axes)
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
  half = _MAX_LABEL // 2
  return line if len(line) <= _MAX_LABEL else f"{line[:half - 1]}…{line[-half:]}"


def _cell(group: list[Reading]) -> Cell:
  axes, results = group[0].axes, [reading.result for reading in group]
  parts = _sum(results)
  tau, identical = parts_lib.tau(parts), [result.identical_to_baseline for result in results]
  rate = estimates.ratio(parts.baseline_tokens.sum(), parts.baseline_seconds.sum())
  cell = Cell(
      axes, len(group), parts, parts_lib.speedup(parts), tau, parts_lib.alpha(parts),
      parts_lib.rate(parts), rate,
      estimates.pass_seconds(_mean(results, "pass_seconds"), rate, axes["batch_size"]),
      _predicted(results, tau.value), None if None in identical else all(identical))
  return cell if cell.timed else cell._replace(speedup=_NONE, predicted=math.nan)


def _sum(results: list[Result]) -> Parts:
  """The parts of every answer, added up over seeds."""
  summed = {}
  for result in results:
    seen = collections.Counter()
    for prompt in result.prompts:
      key = prompt.category, prompt.name, prompt.turn
      counts = [np.atleast_1d(np.float64(getattr(prompt, name))) for name in _SUMMED]
      summed.setdefault((*key, seen[key]), []).append(counts)
      seen[key] += 1
  answers = [[_stack(column).sum(0) for column in zip(*seeds)] for seeds in summed.values()]
  columns = dict(zip(_SUMMED, map(_stack, zip(*answers))))
  return Parts(np.array([category for category, *_ in summed]), **{
      name: column if name in parts_lib.BY_DEPTH else column[:, 0]
      for name, column in columns.items()})


def _stack(rows) -> np.ndarray:
  """float[len(rows), longest], shorter rows filled up with zeros."""
  width = max(map(len, rows))
  return np.stack([np.pad(row, (0, width - len(row))) for row in rows])


def _mean(results: list[Result], cost: str) -> float:
  """A measured cost, averaged over the seeds; NaN if one of them lacks it."""
  return float(np.mean([
      math.nan if result.costs is None else getattr(result.costs, cost) for result in results]))


def _predicted(results: list[Result], tau: float) -> float:
  """The speed-up that tau and the measured costs give, costs averaged over the seeds."""
  rounds = [sum(prompt.rounds for prompt in result.prompts) for result in results]
  if not sum(rounds):
    return math.nan
  drafting, steps = (
      float(np.average([getattr(result, name) for result in results], weights=rounds))
      for name in ("drafting_rounds", "draft_steps"))
  step = _mean(results, "draft_step")
  cost = drafting * _mean(results, "window") + 1 - drafting
  if not all(map(math.isfinite, (tau, step, steps, cost))) or not cost:
    return math.nan
  return float(theory.predicted_speedup(tau, steps, step, cost))
