"""Processes that share a grid measure every cell once."""

import pytest

from specjax.launch.result import Outcome, Result
from specjax.sweep import plan, workers
from specjax.sweep.locks import Locks
from specjax.sweep.results import Results, Writer
from specjax.sweep.workers import Worker
from specjax.types import Error

CELLS = plan.make(
    [{"seed": list(range(5))}, {"prompts": ["chat"]}], {}, "some.py", 0, True, []).cells


def share(folder, locks, worker=Worker()):
  """The seeds of the cells that a worker is given, and the counts that it is told."""
  results, counts = Results(folder, pytest.fail), []
  results.refresh()
  writer, seeds = Writer(folder / worker.file), []
  for cell in workers.share(CELLS, worker, locks, results, counts.append):
    seeds.append(cell.axes["seed"])
    writer.append(Outcome(cell.id, cell.axes, None, Result(), 1.0, "1"))
  writer.close()
  return seeds, counts


def test_one_process_is_given_every_cell_in_order(tmp_path):
  with workers.join(tmp_path, Worker()) as locks:
    seeds, counts = share(tmp_path, locks)
    assert seeds == [0, 1, 2, 3, 4] and counts[0] == 0 and counts[-1] == 5
    assert share(tmp_path, locks)[0] == []
  assert list((tmp_path / "locks").iterdir()) == []


def test_a_worker_begins_with_its_own_share_and_leaves_what_others_hold(tmp_path):
  with Locks(tmp_path / "locks") as others, workers.join(tmp_path, Worker(1, 2)) as locks:
    assert others.take(CELLS[0].id)
    assert share(tmp_path, locks, Worker(1, 2))[0] == [1, 3, 2, 4]


def test_a_cell_that_failed_before_is_wanted_again(tmp_path):
  writer = Writer(tmp_path / "results.jsonl")
  writer.append(Outcome(CELLS[3].id, {}, "no luck", None, 1.0, "0"))
  writer.close()
  with workers.join(tmp_path, Worker()) as locks:
    assert share(tmp_path, locks)[0] == [0, 1, 2, 3, 4]


def test_a_cell_is_held_while_it_is_measured_and_free_once_that_ends(tmp_path):
  results = Results(tmp_path, pytest.fail)
  with Locks(tmp_path / "locks") as other:
    with pytest.raises(KeyboardInterrupt), workers.join(tmp_path, Worker()) as locks:
      for cell in workers.share(CELLS, Worker(), locks, results, lambda cells: None):
        assert not other.take(cell.id)
        raise KeyboardInterrupt
    assert other.take(CELLS[0].id)


def test_two_processes_cannot_write_one_file(tmp_path):
  with workers.join(tmp_path, Worker(0, 2)):
    with workers.join(tmp_path, Worker(1, 2)):
      pass
    with pytest.raises(Error, match="results-0.jsonl is being written by process"):
      with workers.join(tmp_path, Worker(0, 2)):
        pass
