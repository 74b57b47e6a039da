"""All cells of a grid at a glance: the table that a sweep prints, and the same as plain data."""

import math
import pathlib
import statistics
import textwrap

from specjax.launch.result import Outcome
from specjax.launch.text_table import text_table
from specjax.stats import estimates
from specjax.sweep.plan import ALWAYS, Cell, Plan

_SHOWN = (
    "tau", "alpha", "speedup", "predicted_speedup", "tokens_per_second",
    "baseline_tokens_per_second", "speedup_interval", "identical_to_baseline")
_DEFINITIONS = """\
tau: tokens emitted / target passes, the extra token counted. alpha: drafted tokens accepted /
tested. identical: to plain decoding; - where the two are independent samples."""
_OF_SPEED = """\
speed-up: plain seconds per token / speculative seconds per token, in turn in one process, with its
95 % interval over prompts. predicted: tau / (V(N + 1) + s c) for N drafted tokens in s steps, V
and c measured in the cell.
"""

# Every cell with its outcome; None where another worker is measuring it.
Found = list[tuple[Cell, Outcome | None]]


def table(plan: Plan, found: Found) -> str:
  """The table and what its columns mean; without those of speed if no cell has one."""
  axes = plan.varied or ALWAYS
  passes = [seconds for pair in found if not math.isnan(seconds := _pass_seconds(*pair))]
  untimed = [seconds for seconds in passes if not estimates.is_timed(seconds)]
  speed = not passes or len(untimed) < len(passes)
  head = [*axes, "tau", "alpha", *(["speed-up", "predicted"] if speed else []), "identical"]
  rows = []
  for cell, outcome in found:
    numbers = _numbers(outcome, estimates.is_timed(_pass_seconds(cell, outcome)))
    kept = numbers if speed else numbers[:2] + numbers[4:]
    rows.append([str(cell.axes[axis]) for axis in axes] + kept)
  notes = (_OF_SPEED if speed else "") + _DEFINITIONS
  if untimed:
    why = estimates.untimed(statistics.median(untimed))
    notes = textwrap.fill(why, 100, break_on_hyphens=False) + "\n" + notes
  return text_table(head, rows) + "\n\n" + notes


def as_data(folder: pathlib.Path, found: Found, before: set[str]) -> dict:
  """The counts and the numbers of all cells as plain data.

  done, failed, elsewhere: cells of this grid; skipped: those of `done` that were done before.
  """
  here = [(cell, outcome) for cell, outcome in found if outcome is not None]
  done = [cell for cell, outcome in here if outcome.error is None]
  rows = [
      dict(id=cell.id, cell=cell.axes, error=outcome.error,
           **{name: getattr(outcome.result, name, None) for name in _SHOWN})
      for cell, outcome in here]
  return dict(
      folder=folder, done=len(done), failed=len(rows) - len(done), elsewhere=len(found) - len(rows),
      skipped=sum(cell.id in before for cell in done), rows=rows)


def _pass_seconds(cell: Cell, outcome: Outcome | None) -> float:
  """Of plain decoding in a cell, NaN if it is not known."""
  if outcome is None or outcome.result is None:
    return math.nan
  costs, rate = outcome.result.costs, outcome.result.baseline_tokens_per_second
  return estimates.pass_seconds(
      math.nan if costs is None else costs.pass_seconds, rate, cell.axes["batch_size"])


def _numbers(outcome: Outcome | None, timed: bool) -> list[str]:
  if outcome is None:
    return ["elsewhere"] + [""] * 4
  if outcome.error is not None:
    return [f"failed: {outcome.error}"[:60]] + [""] * 4
  result, within = outcome.result, ""
  if result.speedup_interval is not None:
    within = " ({:.2f}-{:.2f})".format(*result.speedup_interval)
  speed = [_number(result.speedup) + within, _number(result.predicted_speedup)]
  return [
      _number(result.tau), _number(result.alpha), *(speed if timed else ["-", "-"]),
      {True: "yes", False: "NO", None: "-"}[result.identical_to_baseline]]


def _number(value: float) -> str:
  return "-" if math.isnan(value) else f"{value:.2f}"
