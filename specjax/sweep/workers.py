"""Processes that share a grid: which of them measures which cell."""

import contextlib
import pathlib
from typing import Callable, Iterator, NamedTuple

from specjax.sweep import locks as locks_lib
from specjax.sweep.locks import Locks
from specjax.sweep.plan import Cell
from specjax.sweep.results import Results
from specjax.types import Error


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


@contextlib.contextmanager
def join(folder: pathlib.Path, worker: Worker) -> Iterator[Locks]:
  """Makes this process the only writer of its worker's file; the locks go when the context ends.

  Raises:
    Error: another process writes that file.
  """
  with Locks(folder / locks_lib.FOLDER) as locks:
    name = pathlib.Path(worker.file).stem
    if not locks.take(name):
      raise Error(
          f"{folder / worker.file} is being written by {locks.holder(name)}. Wait for it, or share "
          "the grid: --num_workers=N, with another --worker_index for each process")
    yield locks


def share(
    cells: list[Cell], worker: Worker, locks: Locks, results: Results,
    settled: Callable[[int], None]) -> Iterator[Cell]:
  """Yields the cells that this process is to measure, until nobody leaves any; each is its alone.

  A cell that failed in an earlier sweep is wanted again. Whoever iterates must have written the
  outcome of a cell before asking for the next one.

  Args:
    cells: of the grid.
    worker: which of the processes this is.
    locks: as `join` gives them.
    results: of the folder.
    settled: called with the number of cells that are done, by whomever.
  """
  ours = {cell.id for cell in cells}
  failed_before = {id(outcome) for outcome in results.outcomes if outcome.error is not None}

  def done() -> set[str]:
    results.refresh()
    found = {each.id for each in results.outcomes if id(each) not in failed_before} & ours
    settled(len(found))
    return found

  took = True
  while took:
    took = False
    for cell in worker.order(cells):
      if cell.id in done() or not locks.take(cell.id):
        continue
      if cell.id not in done():  # another process may have finished it before we had the lock
        yield cell
        took = True
      locks.release(cell.id)
  done()
