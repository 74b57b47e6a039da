"""Results on disk: one JSON line a cell, appended and never changed, so that any end is survived.

Every process that takes part in a sweep appends to a file of its own, `results*.jsonl`, and reads
those of all. A line that cannot be read (the last one of a killed process is often torn) stays
where it is and counts as absent.
"""

import os
import pathlib
from typing import Callable

from specjax.launch import strict_json
from specjax.launch.result import Outcome
from specjax.types import Error

_MAX_FILE_BYTES = 2**32  # a cell of a hundred prompts takes less than 2^19


class Results:
  """What the files of a folder hold. `outcomes` grows with `refresh`."""

  def __init__(self, folder: pathlib.Path, warn: Callable[[str], None]):
    """Reads nothing yet; `warn` is told of lines that cannot be read, naming file and line."""
    self.outcomes: list[Outcome] = []
    self._folder, self._warn = folder, warn
    self._read: dict[pathlib.Path, tuple[int, int]] = {}  # bytes and lines read of each file

  def refresh(self) -> None:
    """Reads what has been appended to the files of the folder since the last time.

    A last line without its end may still be growing, so it is left for later.

    Raises:
      Error: a file that is too large to be results.
    """
    for path in files(self._folder):
      if path.stat().st_size > _MAX_FILE_BYTES:
        raise Error(f"{path}: results have at most {_MAX_FILE_BYTES} bytes")
      position, number = self._read.get(path, (0, 0))
      with path.open("rb") as file:
        file.seek(position)
        for raw in file:
          if not raw.endswith(b"\n"):
            break
          position, number = position + len(raw), number + 1
          self._take(raw, f"{path}, line {number}")
      self._read[path] = position, number

  def latest(self) -> dict[str, Outcome]:
    """What counts for each id: the latest outcome that has a result, else the latest failure."""
    found = {}
    for outcome in sorted(self.outcomes, key=lambda each: (each.error is None, each.finished)):
      found[outcome.id] = outcome
    return found

  def _take(self, raw: bytes, place: str) -> None:
    if not raw.strip():
      return
    try:
      self.outcomes.append(Outcome.from_json(strict_json.loads(raw)))
    except Error as error:
      self._warn(f"{place} is not a result and is left out: {error}")


class Writer:
  """Appends lines to one file that no other process writes."""

  def __init__(self, path: pathlib.Path):
    """Opens the file, made if it is missing; ends a torn last line, so that it swallows none."""
    self._path = path
    self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    size = os.fstat(self._file).st_size
    if size and os.pread(self._file, 1, size - 1) != b"\n":
      self._write(b"\n")

  def append(self, outcome: Outcome) -> None:
    """Adds a line and waits until the disk has it.

    Raises:
      OSError: it cannot be written, for example because the disk is full.
    """
    self._write(strict_json.dumps(outcome.to_json()).encode() + b"\n")

  def close(self) -> None:
    os.close(self._file)

  def _write(self, data: bytes) -> None:
    try:
      while data:
        data = data[os.write(self._file, data):]
      os.fsync(self._file)
    except OSError as error:
      raise OSError(
          error.errno, f"{error.strerror}. Only the cell that was to be written is lost: mend that "
          "and give the same command again", str(self._path)) from error


def files(folder: pathlib.Path) -> list[pathlib.Path]:
  """The files of results in a folder."""
  return sorted(path for path in folder.glob("results*.jsonl") if path.is_file())
