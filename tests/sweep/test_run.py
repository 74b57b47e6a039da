"""A sweep measures what is missing, survives its cells, shares its grid, and compiles once."""

import errno
import importlib.util
import json
import logging
import os
import pathlib
import re
import sys
import types

import jax
import pytest

from specjax.launch import config as config_lib
from specjax.launch.result import Outcome, Result
from specjax.sweep import grid, plan, results, run, workers
from specjax.sweep.locks import Locks

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "tests" / "loading" / "goldens" / "llama"


def make(*groups, **keys):
  keys = dict(target=str(TINY), max_new_tokens=8, **keys)
  groups = [{axis: list(values) for axis, values in group.items()} for group in groups]
  if not any("prompts" in group for group in groups):
    groups.append({"prompts": ["chat"]})
  return plan.make(groups, keys, "some.py", 0, False, [])


class Listener:
  """Remembers what it is told."""

  def __init__(self):
    self.begun, self.counts, self.warnings = [], [], []

  def begin(self, cell):
    self.begun.append(cell)

  def prompts(self, cell, more):
    pass

  def settled(self, cells):
    self.counts.append(cells)

  def warn(self, message):
    self.warnings.append(message)


def sweep(made, folder, worker=workers.Worker()):
  listener = Listener()
  lines, before = run.run(made, folder, worker, listener)
  return lines, before, listener


@pytest.fixture
def measured(monkeypatch):
  """Cells that cost nothing; those of `broken` seeds raise what is given there."""
  broken = {}

  def measure(setup, job, progress):
    progress(1)
    if job.seed in broken:
      raise broken[job.seed]
    return Result(tau=float(job.seed), text=["t"], tokens=[[1]])

  monkeypatch.setattr(run.jobs, "measure", measure)
  monkeypatch.setattr(run.jobs, "check", lambda setup, job: None)
  monkeypatch.setattr(
      run.build, "build", lambda config, load: types.SimpleNamespace(models={"target": "0"}))
  return broken


SEEDS = dict(seed=(0, 1, 2))


def test_a_line_says_what_the_cell_was_and_gave(tmp_path, measured):
  made = make(SEEDS)
  lines, before, listener = sweep(made, tmp_path)
  assert before == set() and listener.counts[-1] == 3 and listener.warnings == []
  assert [cell.axes["seed"] for cell in listener.begun] == [0, 1, 2]
  outcome = lines[made.cells[2].id]
  assert outcome.cell == made.cells[2].axes and outcome.error is None
  assert outcome.result == Result(tau=2.0, tokens=[[1]])  # texts are not kept
  on_disk = [json.loads(text) for text in (tmp_path / "results.jsonl").read_text().splitlines()]
  assert set(on_disk[2]) == {"id", "cell", "error", "result", "wall_seconds", "finished"}
  assert "text" not in on_disk[2]["result"] and on_disk[2]["result"]["alpha"] is None
  assert {each["id"]: Outcome.from_json(each) for each in on_disk} == lines
  assert json.loads((tmp_path / "sweep.json").read_text())["manifest"]["models"] == {str(TINY): "0"}


def test_what_is_done_is_not_done_again_and_grids_may_grow(tmp_path, measured):
  sweep(make(SEEDS), tmp_path)
  lines, before, listener = sweep(make(SEEDS), tmp_path)
  assert listener.begun == [] and len(before) == 3 and listener.counts == [3]
  lines, _, listener = sweep(make(dict(seed=(2, 3)), dict(gamma=(4, 5))), tmp_path)
  assert len(listener.begun) == 3 and len(lines) == 6


def test_a_failing_cell_is_written_down_and_tried_again(tmp_path, measured, capsys):
  measured[1] = ValueError("bad\n  luck")
  measured[2] = RuntimeError("x" * 10_000)
  made = make(SEEDS)
  lines, _, listener = sweep(made, tmp_path)
  errors = [lines[cell.id].error for cell in made.cells]
  assert errors[:2] == [None, "ValueError: bad luck"] and lines[made.cells[1].id].result is None
  assert errors[2].startswith("RuntimeError: xxx") and len(errors[2]) == 2000
  assert len(listener.begun) == 3 and len(listener.warnings) == 2
  assert "Traceback" in capsys.readouterr().err  # of what is no mistake of the user's
  measured.clear()
  lines, before, listener = sweep(made, tmp_path)
  assert [cell.axes["seed"] for cell in listener.begun] == [1, 2] and len(before) == 1
  assert all(line.error is None for line in lines.values())
  assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 5  # nothing is removed


def test_an_interruption_ends_the_sweep_and_frees_the_cell(tmp_path, measured):
  measured[1] = KeyboardInterrupt()
  with pytest.raises(KeyboardInterrupt):
    sweep(make(SEEDS), tmp_path)
  assert list((tmp_path / "locks").iterdir()) == []
  measured.clear()
  assert len(sweep(make(SEEDS), tmp_path)[2].begun) == 2


def test_a_full_disk_ends_the_sweep(tmp_path, measured, monkeypatch):
  made, real = make(SEEDS), results.Writer.append

  def append(writer, line):
    if line.cell["seed"] == 1:
      monkeypatch.setattr(os, "write", full)
    real(writer, line)

  def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  with monkeypatch.context():
    monkeypatch.setattr(results.Writer, "append", append)
    with pytest.raises(OSError, match="No space left"):
      sweep(made, tmp_path)
    monkeypatch.undo()
  assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 1


def test_a_model_that_cannot_be_loaded_ends_the_sweep(tmp_path):
  with pytest.raises(ValueError, match="/none.gguf: no such file"):
    sweep(plan.make([{"prompts": ["chat"]}], dict(target="/none.gguf"), "f", 0, True, []), tmp_path)
  with pytest.raises(ValueError, match="the target has layers 1 to 2"):
    sweep(make(dict(drafter=("ngram", "layer_skip:3"))), tmp_path)
  assert not (tmp_path / "results.jsonl").exists() and not (tmp_path / "sweep.json").exists()


def test_workers_share_a_grid(tmp_path, measured):
  made = make(dict(seed=range(5)))
  with Locks(tmp_path / "locks") as others:
    assert others.take(made.cells[0].id) and others.take(made.cells[3].id)
    lines, _, one = sweep(made, tmp_path, workers.Worker(1, 2))
    assert [cell.axes["seed"] for cell in one.begun] == [1, 2, 4]  # its own share first
    assert len(lines) == 3
  lines, before, other = sweep(made, tmp_path, workers.Worker(0, 2))
  assert [cell.axes["seed"] for cell in other.begun] == [0, 3] and len(lines) == 5
  assert len((tmp_path / "results-0.jsonl").read_text().splitlines()) == 2
  assert len((tmp_path / "results-1.jsonl").read_text().splitlines()) == 3


def test_a_worker_looks_again_once_it_has_the_lock(tmp_path, measured, monkeypatch):
  made, real = make(SEEDS), Locks.take

  def take(locks, name):  # somebody finishes the cell between the look and the lock
    if name == made.cells[0].id and not (tmp_path / "results-1.jsonl").exists():
      writer = results.Writer(tmp_path / "results-1.jsonl")
      writer.append(Outcome(name, {}, None, Result(), wall_seconds=0.0, finished=""))
    return real(locks, name)

  monkeypatch.setattr(Locks, "take", take)
  lines, _, listener = sweep(made, tmp_path, workers.Worker(0, 2))
  assert [cell.axes["seed"] for cell in listener.begun] == [2, 1] and len(lines) == 3


def test_a_file_has_one_writer(tmp_path, measured):
  with Locks(tmp_path / "locks") as other:
    other.take("results")
    with pytest.raises(ValueError, match=f"written by process {os.getpid()}.*--num_workers"):
      sweep(make(SEEDS), tmp_path)
    assert len(sweep(make(SEEDS), tmp_path, workers.Worker(0, 2))[0]) == 3


def test_the_report_is_handed_every_line_that_counts(tmp_path, monkeypatch):
  seen = []
  stub = types.ModuleType("specjax.report.write")
  stub.write = lambda rows, folder: seen.append((rows, folder))
  monkeypatch.setitem(sys.modules, "specjax.report.write", stub)
  monkeypatch.setattr("specjax.report.write", stub, raising=False)
  assert run.write_report(tmp_path, {"a": {"id": "a"}}) is None
  assert seen == [([{"id": "a"}], tmp_path)]

  def missing(rows, folder):
    raise ModuleNotFoundError("figures need matplotlib")

  stub.write = missing
  assert run.write_report(tmp_path, {}) == "no report: figures need matplotlib"
  with Locks(tmp_path / "locks") as other:
    other.take("report")
    assert "is being written by process" in run.write_report(tmp_path, {})


def test_a_sweep_over_numbers_compiles_once(tmp_path, monkeypatch, caplog):
  prompts = tmp_path / "p.jsonl"
  prompts.write_text('{"prompt": "the cat the cat the"}\n')
  loads, real = [], run.build.load_model
  monkeypatch.setattr(
      run.build, "load_model", lambda *which: loads.append(which) or real(*which))
  numbers = dict(
      rule=("lenient:0.9", "lenient:0.8"), temperature=(1.0, 0.6), top_p=(0.9, 0.8), top_k=(5, 9),
      min_p=(0.01, 0.02), seed=(0, 1))
  made = make(
      *({axis: values} for axis, values in numbers.items()), dict(prompts=[str(prompts)]), gamma=2)
  # The first value of everything, then the second of each in turn.
  first = made.cells[0].axes
  cells = [c for c in made.cells if sum(c.axes[axis] != first[axis] for axis in numbers) <= 1]
  listener = Listener()
  counts = []
  listener.begin = lambda cell: counts.append(len(compiled(caplog)))
  with jax.log_compiles(), caplog.at_level(logging.WARNING):
    run.run(made._replace(cells=cells), tmp_path / "out", workers.Worker(), listener)
  assert len(cells) == 7 and len(loads) == 1
  names = compiled(caplog)
  assert {"run", "start", "_run_passes", "_run_drafts"} <= set(names)
  assert names[counts[1]:] == []  # all of it before the second cell


def compiled(caplog) -> list[str]:
  """The functions that jax has compiled, in order."""
  found = [re.match(r"Compiling (?:jit\()?(\w+)", record.getMessage()) for record in caplog.records]
  return [match.group(1) for match in found if match]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "configs" / "sweeps").glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_the_files_of_configs_are_sweeps(path):
  spec = importlib.util.spec_from_file_location("sweep_under_test", path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  keys = module.get_config().to_dict()
  axes = grid.from_config(keys.pop("sweep"), str(path))
  assert plan.make(axes, keys, str(path), 0, True, []).cells
  assert set(keys) == set(vars(config_lib.DecodeConfig()))
