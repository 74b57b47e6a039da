"""Results survive torn lines, full disks and other people's files."""

import errno
import json
import os

import pytest

from specjax.launch import errors
from specjax.launch.result import Outcome
from specjax.sweep.results import Results, Writer


def line(id="a", error=None, finished="1", wall_seconds=1.0):
  result = None if error else {"tau": 1.0}
  return dict(
      id=id, cell={}, error=error, result=result, wall_seconds=wall_seconds, finished=finished)


def write(path, *lines):
  writer = Writer(path)
  for each in lines:
    writer.append(Outcome.from_json(each))
  writer.close()


def read(folder):
  warnings = []
  found = Results(folder, warnings.append)
  found.refresh()
  return found, warnings


def test_what_is_written_is_read(tmp_path):
  write(tmp_path / "results.jsonl", line("a"), line("é", error="ValueError: x"))
  write(tmp_path / "results-3.jsonl", line("b"))
  found, warnings = read(tmp_path)
  assert [each.id for each in found.outcomes] == ["b", "a", "é"] and warnings == []


def test_only_what_is_new_is_read_again(tmp_path):
  write(tmp_path / "results.jsonl", line("a"))
  found, _ = read(tmp_path)
  first = found.outcomes[0]
  write(tmp_path / "results.jsonl", line("b"))
  found.refresh()
  assert found.outcomes[0] is first and [each.id for each in found.outcomes] == ["a", "b"]


def test_a_torn_line_is_named_and_swallows_nothing(tmp_path):
  path = tmp_path / "results.jsonl"
  write(path, line("a"))
  torn = json.dumps(line("b"))[:40].encode()
  path.write_bytes(path.read_bytes() + torn)
  found, warnings = read(tmp_path)
  assert len(found.outcomes) == 1 and warnings == []  # it may be growing still
  write(path, line("c"))
  found.refresh()
  assert [each.id for each in found.outcomes] == ["a", "c"]
  assert len(warnings) == 1 and f"{path}, line 2" in warnings[0]
  assert path.read_bytes().splitlines()[1] == torn  # it stays


@pytest.mark.parametrize("text", [
    b"\xff\xfe", b"{}", b"[1]", b'"a"', b"{" * 100_000, b"nonsense",
    json.dumps(line(), allow_nan=True).replace("1.0", "NaN").encode(),
    json.dumps(dict(line(), id=3)).encode(), json.dumps(dict(line(), error="x")).encode(),
    json.dumps(dict(line(), result=None)).encode(), json.dumps(line()).replace(
        "1.0", "1e999").encode(), json.dumps(line()).replace("1.0", "9" * 5000).encode(),
    *(json.dumps(dict(line(), result=result)).encode() for result in (
        dict(tau="<b>"), dict(speedup=True), dict(speedup_interval=3),
        dict(speedup_interval=[1, "x"]), dict(identical_to_baseline=1))),
])
def test_a_line_that_is_none_is_left_out(tmp_path, text):
  (tmp_path / "results.jsonl").write_bytes(text + b"\n\n")
  write(tmp_path / "results.jsonl", line("a"))
  found, warnings = read(tmp_path)
  assert [each.id for each in found.outcomes] == ["a"]
  assert len(warnings) == 1 and "results.jsonl, line 1 " in warnings[0]


def test_the_latest_good_line_counts(tmp_path):
  write(
      tmp_path / "results.jsonl", line("a", finished="2", wall_seconds=1),
      line("b", error="x", finished="1"), line("b", error="y", finished="3"),
      line("c", finished="1"), line("c", error="z", finished="9"))
  write(tmp_path / "results-0.jsonl", line("a", finished="1", wall_seconds=2))
  latest = read(tmp_path)[0].latest()
  assert latest["a"].wall_seconds == 1 and latest["b"].error == "y" and latest["c"].error is None


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_told_and_loses_nothing(tmp_path, monkeypatch, call):
  path = tmp_path / "results.jsonl"
  write(path, line("a"))
  before = path.read_bytes()

  def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  writer = Writer(path)
  monkeypatch.setattr(os, call, full)
  with pytest.raises(OSError, match="No space left on device.*same command again") as error:
    writer.append(Outcome.from_json(line("b")))
  assert errors.is_user_error(error.value)
  assert errors.paragraph(error.value).startswith(f"{path}: No space left on device. Only the cell")
  assert path.read_bytes().startswith(before)
