"""Measures the cells of a sweep and writes down each at once; `workers` shares them."""

import contextlib
import datetime
import functools
import pathlib
import sys
import time
import traceback
from typing import Protocol

from specjax.launch import build, errors, record
from specjax.launch.result import Outcome
from specjax.measure import job as jobs
from specjax.sweep import locks as locks_lib, sweep_json, workers
from specjax.sweep.locks import Locks
from specjax.sweep.plan import Cell, Plan
from specjax.sweep.results import Results, Writer
from specjax.sweep.workers import Worker

_MAX_ERROR = 2000  # characters of an error; compiler errors can be megabytes


class Listener(Protocol):
  """Who is told how a sweep goes."""

  def begin(self, cell: Cell) -> None:
    """A cell begins."""

  def prompts(self, cell: Cell, more: int) -> None:
    """So many more prompts of the cell are answered."""

  def settled(self, cells: int) -> None:
    """So many cells of the plan are done, whoever did them."""

  def warn(self, message: str) -> None:
    """Something that a person should know, but that stops nothing."""


def run(
    plan: Plan, folder: pathlib.Path, worker: Worker, listener: Listener
) -> tuple[dict[str, Outcome], set[str]]:
  """Measures what is missing of a plan in a folder.

  A cell that fails is written down with its error, and tried again when the sweep is started again.

  Returns:
    The outcome that counts for each id that the folder has (cells of earlier sweeps over other
    values of the axes too), and the ids that had a result before.

  Raises:
    Error: the folder is of another sweep; a model cannot be loaded, or cannot do what a cell
      asks for; another process has this worker's file.
    OSError: a result cannot be written. Those before it are safe.
  """
  sweep_json.check(folder, plan)
  with workers.join(folder, worker) as locks:
    results = Results(folder, listener.warn)
    results.refresh()
    done = {key for key, outcome in results.latest().items() if outcome.error is None}
    missing = [cell for cell in plan.cells if cell.id not in done]
    if not missing:
      listener.settled(len(plan.cells))
      return results.latest(), done
    load = _remembering_load()
    _begin(folder, plan, missing, load, listener)
    with contextlib.closing(Writer(folder / worker.file)) as writer:
      for cell in workers.share(plan.cells, worker, locks, results, listener.settled):
        listener.begin(cell)
        writer.append(_measure(cell, load, listener))
  return results.latest(), done


def write_report(folder: pathlib.Path, outcomes: dict[str, Outcome]) -> str | None:
  """Writes the report of a finished sweep; says why not where it cannot.

  Args:
    folder: of the sweep.
    outcomes: as `run` returns them.
  """
  with Locks(folder / locks_lib.FOLDER) as locks:
    if not locks.take("report"):
      return f"the report is being written by {locks.holder('report')}"
    try:
      from specjax.report import write
      write.write(list(outcomes.values()), folder)
    except ImportError as error:
      return f"no report: {errors.paragraph(error)}"
  return None


def _remembering_load():
  """`build.load_model`, which loads each model once."""
  remembered = functools.cache(build.load_model)

  def load(path: str, dtype: str):
    return remembered(path, dtype)  # one spelling of the arguments, one entry

  return load


def _begin(folder, plan, missing: list[Cell], load, listener: Listener) -> None:
  """Loads the models and builds every cell before any is measured; writes sweep.json."""
  models, checked = {}, set()
  for cell in missing:
    config = cell.job.config
    setup = build.build(config, load)
    if (texts := (config.target, cell.axes["prompts"])) not in checked:
      jobs.check(setup, cell.job)
      checked.add(texts)
    models |= {getattr(config, role): sha256 for role, sha256 in setup.models.items()}
  manifest = record.manifest(missing[0].job.seed, plan.base["config"], models)
  for name, (then, now) in sweep_json.write(folder, plan, manifest).items():
    listener.warn(f"{folder} was begun with {name} = {then!r}, this run has {now!r}")


def _measure(cell: Cell, load, listener: Listener) -> Outcome:
  begin = time.perf_counter()
  result = error = None
  try:
    setup = build.build(cell.job.config, load)
    result = jobs.measure(setup, cell.job, functools.partial(listener.prompts, cell))
  except Exception as failure:  # whatever it is, the other cells may be fine
    error = errors.paragraph(failure)[:_MAX_ERROR]
    if not errors.is_user_error(failure):
      error = f"{type(failure).__name__}: {error}"[:_MAX_ERROR]
      traceback.print_exc(file=sys.stderr)
    listener.warn(f"{cell.name} failed, the rest goes on: {error}")
  return Outcome(
      id=cell.id, cell=cell.axes, error=error, result=result,
      wall_seconds=time.perf_counter() - begin,
      finished=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds"))
