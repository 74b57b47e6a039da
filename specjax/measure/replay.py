"""Repeats a recorded decoding run, and says whether every token came out the same.

A record is the JSON that `experiments.decode` writes: its manifest holds seed and configuration,
its `inputs` what was asked. It may come from anywhere, so it is checked like any
other outside file.
"""

import pathlib
from typing import NamedTuple

from specjax.launch import config as config_lib, prompts, strict_json
from specjax.launch.prompts import Conversation
from specjax.measure.job import Job
from specjax.types import Error

_MAX_FILE_BYTES = 256 * 2**20  # a run of 10 000 prompts stays below


class Record(NamedTuple):
  """A recorded run."""

  job: Job
  tokens: list[list[int]]
  manifest: dict


def load(path: str) -> Record:
  """Reads a record.

  Raises:
    Error: no such file, not a record of `experiments.decode`, or one without what a replay
      needs; names the file and what is wrong.
  """
  file = pathlib.Path(path)
  if not file.is_file():
    raise Error(f"--replay={path}: there is no such file")
  if file.stat().st_size > _MAX_FILE_BYTES:
    raise Error(f"--replay={path}: a record has at most {_MAX_FILE_BYTES} bytes")
  try:
    # The last line, so that the saved output of a run with --json is a record too.
    return _checked(strict_json.loads(file.read_bytes().strip().splitlines()[-1]), path)
  except (KeyError, TypeError, IndexError, ValueError) as error:
    raise Error(
        f"--replay={path} is not a record of experiments.decode (written by --out or --json): "
        f"{type(error).__name__}: {error}") from error


def _checked(found, path: str) -> Record:
  """What a record holds.

  Raises:
    KeyError, TypeError, ValueError: a part is missing or of another kind.
  """
  manifest, inputs = _typed(found, dict)["manifest"], _typed(found["inputs"], dict)
  conversations = [
      Conversation(
          _typed(c["name"], str), _typed(c["category"], str),
          prompts.checked(c["turns"], path), _typed(c["source"], str))
      for c in _typed(inputs["conversations"], list)]
  if not conversations:
    raise Error("it holds no prompt")
  tokens = [[_typed(token, int) for token in _typed(answer, list)]
            for answer in _typed(found["tokens"], list)]
  config = config_lib.from_mapping(_typed(_typed(manifest, dict)["config"], dict), "its config")
  job = Job(
      config, _typed(manifest["seed"], int), conversations,
      _typed(inputs["apply_chat_template"], bool),
      [_typed(text, str) for text in _typed(inputs["stop"], list)])
  return Record(job, tokens, manifest)


def _typed(value, kind: type):
  if type(value) is not kind:
    raise TypeError(f"{value!r:.60} is no {kind.__name__}")
  return value


def compare(record: Record, tokens: list[list[int]], manifest: dict) -> dict:
  """Whether a replay gave the recorded tokens; where not, and what is different about the run.

  Returns:
    identical: bool; answer, position: of the first difference, else None; recorded, replayed: the
    tokens there (None where an answer had ended); changed: {setting: [recorded, now]}.
  """
  result = dict(identical=record.tokens == tokens, answer=None, position=None, recorded=None,
                replayed=None, changed=changed(record.manifest, manifest))
  for answer in range(max(len(record.tokens), len(tokens))):
    old, new = (some[answer] if answer < len(some) else [] for some in (record.tokens, tokens))
    if old != new:
      place = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
      first, second = (some[place] if place < len(some) else None for some in (old, new))
      result.update(answer=answer, position=place, recorded=first, replayed=second)
      break
  return result


def changed(old: dict, new: dict, prefix: str = "") -> dict:
  """Settings of two manifests that differ, by dotted name; the command line does not matter."""
  found = {}
  for key in sorted((set(old) | set(new)) - {"command"}):
    before, now = old.get(key), new.get(key)
    if isinstance(before, dict) and isinstance(now, dict):
      found |= changed(before, now, f"{prefix}{key}.")
    elif before != now:
      found[prefix + key] = [before, now]
  return found


def describe(comparison: dict) -> str:
  """The comparison in a few lines."""
  if comparison["identical"]:
    lines = ["replay: bit-identical, every token is the recorded one"]
  else:
    lines = [
        f"replay: DIFFERS, first in answer {comparison['answer']} "
        f"at token {comparison['position']}: recorded {_token(comparison['recorded'])}, "
        f"now {_token(comparison['replayed'])}"]
  lines += [f"  {name}: recorded {before}, now {now}"
            for name, (before, now) in comparison["changed"].items()]
  return "\n".join(lines)


def _token(value: int | None) -> str:
  return "the end" if value is None else f"token {value}"
