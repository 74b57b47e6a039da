"""Measures the cells of a sweep, alone or beside other processes, and writes down each at once."""

import contextlib
import datetime
import functools
import pathlib
import sys
import time
import traceback
from typing import NamedTuple, Protocol

from specjax.launch import build, errors, record
from specjax.launch.result import Outcome
from specjax.measure import job as jobs
from specjax.sweep import header
from specjax.sweep.locks import Claims
from specjax.sweep.plan import Cell, Plan
from specjax.sweep.results import Results, Writer
from specjax.types import Error

_LONGEST = 2000  # characters of an error; those of a compiler know no end


class Worker(NamedTuple):
  """One of the processes that share a grid."""

  index: int = 0
  count: int = 1

  @property
  def file(self) -> str:
    """Where this worker's results go."""
    return "results.jsonl" if self.count == 1 else f"results-{self.index}.jsonl"

  def order(self, cells: list[Cell]) -> list[Cell]:
    """The worker's own share first, then everybody's: who is done early helps the others."""
    return cells[self.index::self.count] + cells


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
  header.check(folder, plan)
  with Claims(folder / "claims") as claims:
    if not claims.take(pathlib.Path(worker.file).stem):
      holder = claims.holder(pathlib.Path(worker.file).stem)
      raise Error(
          f"{folder / worker.file} is being written by {holder}. Wait for it, or share the grid: "
          "--num_workers=N, with another --worker_index for each process")
    results = Results(folder, listener.warn)
    results.refresh()
    done = {key for key, outcome in results.latest().items() if outcome.error is None}
    missing = [cell for cell in plan.cells if cell.id not in done]
    if missing:
      remembered = functools.cache(build.load_model)
      load = lambda path, dtype: remembered(path, dtype)
      _begin(folder, plan, missing, load, listener)
      with contextlib.closing(Writer(folder / worker.file)) as writer:
        _measure_all(plan, worker, claims, results, writer, load, listener)
    else:
      listener.settled(len(plan.cells))
  return results.latest(), done


def write_report(folder: pathlib.Path, outcomes: dict[str, Outcome]) -> str | None:
  """Writes the report of a finished sweep; says why not where it cannot.

  Args:
    folder: of the sweep.
    outcomes: as `run` returns them.
  """
  with Claims(folder / "claims") as claims:
    if not claims.take("report"):
      return f"the report is being written by {claims.holder('report')}"
    try:
      from specjax.report import write
      write.write(list(outcomes.values()), folder)
    except ImportError as error:
      return f"no report: {errors.paragraph(error)}"
  return None


def _begin(folder, plan, missing: list[Cell], load, listener: Listener) -> None:
  """Loads the models, builds every cell with them before any is measured, writes the header."""
  models, checked = {}, set()
  for cell in missing:
    config = cell.job.config
    setup = build.build(config, load)
    if (said := (config.target, cell.axes["prompts"])) not in checked:
      jobs.check(setup, cell.job)
      checked.add(said)
    models |= {getattr(config, role): sha256 for role, sha256 in setup.models.items()}
  manifest = record.manifest(missing[0].job.seed, plan.base["config"], models)
  for name, (then, now) in header.write(folder, plan, manifest).items():
    listener.warn(f"{folder} was begun with {name} = {then!r}, this run has {now!r}")


def _measure_all(plan, worker, claims, results, writer, load, listener: Listener) -> None:
  """Measures what nobody else does until nothing is left to take."""
  ours = {cell.id for cell in plan.cells}
  failed_before = {id(outcome) for outcome in results.outcomes if outcome.error is not None}

  def settled() -> set[str]:
    results.refresh()
    found = {each.id for each in results.outcomes if id(each) not in failed_before} & ours
    listener.settled(len(found))
    return found

  took = True
  while took:
    took = False
    for cell in worker.order(plan.cells):
      if cell.id in settled() or not claims.take(cell.id):
        continue
      try:
        if cell.id not in settled():  # finished by another between the look and the claim
          listener.begin(cell)
          writer.append(_measure(cell, load, listener))
          took = True
      finally:
        claims.release(cell.id)
  settled()


def _measure(cell: Cell, load, listener: Listener) -> Outcome:
  begin = time.perf_counter()
  result = error = None
  try:
    setup = build.build(cell.job.config, load)
    result = jobs.measure(setup, cell.job, functools.partial(listener.prompts, cell))
  except Exception as failure:  # whatever it is, the other cells may be fine
    error = errors.paragraph(failure)[:_LONGEST]
    if not errors.is_user_error(failure):
      error = f"{type(failure).__name__}: {error}"[:_LONGEST]
      traceback.print_exc(file=sys.stderr)
    listener.warn(f"{cell.name} failed, the rest goes on: {error}")
  return Outcome(
      id=cell.id, cell=cell.axes, error=error, result=result,
      wall_seconds=time.perf_counter() - begin,
      finished=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds"))
