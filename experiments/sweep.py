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

import pathlib
import sys

import tqdm
from absl import flags

from specjax.launch import app, config as config_lib, prompts
from specjax.sweep import grid, overview, plan as plan_lib, run, workers
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
  print("\n" + overview.table(plan, found))
  result = overview.as_data(folder, found, before)
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


if __name__ == "__main__":
  app.run(main)
