"""Measures a grid of configurations, each next to plain decoding, and reports on all of them.

    python -m experiments.sweep --prompts=extraction --gamma=1,2,4,8 --temperature=0,0.6,1 --out=DIR
    python -m experiments.sweep --rule=token,block,typical:0.09,0.3 --seeds=0,1,2 ... --out=DIR
    python -m experiments.sweep --config=configs/sweeps/gamma_temperature.py --out=DIR
    python -m experiments.sweep ... --out=DIR --num_workers=4 --worker_index=0

Axes: every key of a configuration is a flag that takes several values, and so are --seeds and
--prompts. Commas separate values, and a flag may be repeated; a number behind a comma belongs to
the NAME:NUMBER before it, so `token,typical:0.09,0.3` are two rules. The grid is the product of the
axes; keys that are no axis have the value of --config. A configuration file may hold the axes too,
in an entry `sweep`, where axes can also move together (`zip`): see configs/sweeps and
specjax/sweep/grid.py.

Every cell that is done is one line of results.jsonl in --out, on disk before the next cell begins,
so the program may be killed at any time: the same command goes on where it was, and tries failed
cells again. More values of an axis may be added later. The report is written when no cell is
missing.

Several processes, also on several machines, may share a grid and a folder: give each --num_workers
and a --worker_index of its own. A cell that is being measured is locked in DIR/locks. The lock of a
killed process is void at once on its own machine, elsewhere after ten minutes without a sign of
life.

The exit code is 0 if every cell is done or is being measured by another worker, 1 if one failed.
"""

import math
import pathlib
import statistics
import sys
import textwrap

import tqdm
from absl import flags

from experiments.benchmarks import tables
from specjax.launch import app, config as config_lib, prompts
from specjax.launch.result import Outcome
from specjax.stats import estimates
from specjax.sweep import grid, plan as plan_lib, run, workers
from specjax.types import Error

_CONFIG = config_lib.define()
_NAMES = {"seed": "seeds"}  # of flags, where --seed is that of every experiment
_HELP = {
    "seed": "axis: seeds, in place of --seed",
    "prompts": "axis: JSONL files with `turns` (Spec-Bench) or `prompt` in each line, or names of "
               f"sets: {', '.join(prompts.SETS)}"}
_AXES = {
    axis: flags.DEFINE_multi_string(
        _NAMES.get(axis, axis), [], _HELP.get(axis, f"axis: values of config.{axis}"))
    for axis in grid.AXES}
_TEMPLATE = flags.DEFINE_bool("apply_chat_template", True, "use the model's chat format")
_STOP = flags.DEFINE_multi_string("stop", [], "a text that ends an answer; may be repeated")
_NUM_WORKERS = flags.DEFINE_integer(
    "num_workers", 1, "processes that share the grid", lower_bound=1)
_WORKER_INDEX = flags.DEFINE_integer(
    "worker_index", 0, "which of them this is, from 0", lower_bound=0)

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


def main(_):
  if app.OUT.value is None:
    raise Error("--out=DIR is needed: a sweep keeps its results there")
  if _WORKER_INDEX.value >= _NUM_WORKERS.value:
    raise Error(
        f"--worker_index={_WORKER_INDEX.value} is none of --num_workers={_NUM_WORKERS.value}: they "
        f"are counted from 0 to {_NUM_WORKERS.value - 1}")
  folder, plan = pathlib.Path(app.OUT.value), _plan()
  worker = workers.Worker(_WORKER_INDEX.value, _NUM_WORKERS.value)
  with tqdm.tqdm(total=len(plan.cells), unit="cell", file=sys.stderr) as bar:
    outcomes, before = run.run(plan, folder, worker, _Bar(plan, bar))
  found = [(cell, outcomes.get(cell.id)) for cell in plan.cells]
  print("\n" + _table(plan, found))
  result = _summary(folder, found, before)
  if result["elsewhere"]:
    _warn(f"{result['elsewhere']} cells are being measured by other workers, the last of which "
          "writes the report; should one be killed, give the same command again")
  elif complaint := run.write_report(folder, outcomes):
    _warn(complaint)
  app.show(result)
  return 1 if result["failed"] else 0


def _plan() -> plan_lib.Plan:
  keys, source = config_lib.unchecked(_CONFIG)
  axes = grid.replace(
      grid.from_config(keys.pop("sweep", {}), source),
      grid.from_flags({axis: flag.value for axis, flag in _AXES.items() if flag.value}))
  if flags.FLAGS["seed"].present and any("seed" in group for group in axes):
    raise Error("--seed is the seed of all cells, but the seeds are an axis: give one of them")
  return plan_lib.make(axes, keys, source, app.SEED.value, _TEMPLATE.value, _STOP.value)


class _Bar(run.Listener):
  """A bar over the cells, with the prompts of the one at hand."""

  def __init__(self, plan: plan_lib.Plan, bar: tqdm.tqdm):
    self._plan, self._bar = plan, bar
    self._answered, self._counting = 0, False

  def begin(self, cell):
    self._answered = 0
    self.prompts(cell, 0)

  def prompts(self, cell, more):
    self._answered += more
    self._bar.set_postfix_str(
        f"{self._plan.label(cell)}, prompt {self._answered} of {cell.job.turns}",
        refresh=sys.stderr.isatty())  # a log needs no line for every prompt

  def settled(self, cells):
    if not self._counting:  # what was there before says nothing about the time left
      self._counting, self._bar.initial = True, cells
      self._bar.unpause()
    self._bar.update(cells - self._bar.n)

  def warn(self, message):
    _warn(message)


def _warn(message: str) -> None:
  tqdm.tqdm.write(f"sweep: warning: {message}", file=sys.stderr)


def _table(plan: plan_lib.Plan, found) -> str:
  """The table and what its columns mean; without those of speed if no cell has one."""
  axes = plan.varied or plan_lib.ALWAYS
  passes = [seconds for pair in found if not math.isnan(seconds := _pass_seconds(*pair))]
  untimed = [seconds for seconds in passes if not estimates.is_timed(seconds)]
  speed = not passes or len(untimed) < len(passes)
  rows = [[*axes, "tau", "alpha", *(["speed-up", "predicted"] if speed else []), "identical"]]
  for cell, outcome in found:
    numbers = _numbers(outcome, estimates.is_timed(_pass_seconds(cell, outcome)))
    kept = numbers if speed else numbers[:2] + numbers[4:]
    rows.append([str(cell.axes[axis]) for axis in axes] + kept)
  notes = (_OF_SPEED if speed else "") + _DEFINITIONS
  if untimed:
    why = estimates.untimed(statistics.median(untimed))
    notes = textwrap.fill(why, 100, break_on_hyphens=False) + "\n" + notes
  return tables.table(rows) + "\n\n" + notes


def _pass_seconds(cell: plan_lib.Cell, outcome: Outcome | None) -> float:
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


def _summary(folder: pathlib.Path, found, before: set[str]) -> dict:
  """done, failed, elsewhere: cells of this grid; skipped: those of `done` that were done before."""
  here = [(cell, outcome) for cell, outcome in found if outcome is not None]
  done = [cell for cell, outcome in here if outcome.error is None]
  rows = [
      dict(id=cell.id, cell=cell.axes, error=outcome.error,
           **{name: getattr(outcome.result, name, None) for name in _SHOWN})
      for cell, outcome in here]
  return dict(
      folder=folder, done=len(done), failed=len(rows) - len(done), elsewhere=len(found) - len(rows),
      skipped=sum(cell.id in before for cell in done), rows=rows)


if __name__ == "__main__":
  app.run(main)
