"""Other libraries, each in a process of its own that waits between its turns.

One process cannot hold several of them fairly: each has its own pool of threads, and some bring
clashing copies of the same runtime. So every peer is started once, keeps its model, and is asked
over a pipe; while one decodes, the others sleep. All of them see the same machine in one run.
"""

import json
import pathlib
import subprocess
import tempfile
from typing import NamedTuple

from specjax.types import Error

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_EXIT_SECONDS = 10


class Reply(NamedTuple):
  """One decoded prompt."""

  tokens: list[int]
  seconds: float  # in which the last `timed` tokens were made
  timed: int


class Missing(Exception):
  """A peer that is not installed; says what is missing."""


class Peer:
  """A running worker; use it as a context. It loads the model of `folder` at its first decoding.

  Raises:
    Missing: its library is not installed.
    Error: the interpreter cannot be started, or the worker broke down.
  """

  def __init__(
      self, name: str, python: str, folder: pathlib.Path, threads: int, context: int,
      eos: tuple[int, ...]):
    self.name = name
    arguments = [name, str(folder), str(threads), str(context), ",".join(map(str, eos))]
    command = [python, "-m", "experiments.benchmarks.worker", *arguments]
    self._errors = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill up
    try:
      self._process = subprocess.Popen(
          command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
          stderr=self._errors, text=True, bufsize=1)
    except OSError as error:
      raise Error(f"--peer_python={python}: cannot be started: {error.strerror}") from None
    greeting = self._read()
    if "missing" in greeting:
      self.__exit__()
      raise Missing(greeting["missing"])
    self.versions: dict[str, str] = greeting["ready"]

  def __enter__(self) -> "Peer":
    return self

  def __exit__(self, *_):
    self._process.stdin.close()
    try:
      self._process.wait(_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
      self._process.kill()
    self._errors.close()

  def decode(self, prompt: list[int], max_new_tokens: int, mode: dict) -> Reply:
    """Decodes greedily; `mode` holds options of the peer's own."""
    request = dict(prompt=prompt, max_new_tokens=max_new_tokens, mode=mode)
    self._process.stdin.write(json.dumps(request) + "\n")
    return Reply(**self._read())

  def _read(self) -> dict:
    line = self._process.stdout.readline()
    if not line:
      self._errors.seek(0)
      said = self._errors.read().strip().splitlines() or ["nothing"]
      raise Error(f"{self.name} broke down; its last words: {said[-1]}")
    return json.loads(line)
