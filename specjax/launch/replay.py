"""Plays a recorded decoding run again, and says whether every token came out the same.

A record is the JSON that `experiments.decode` writes: its manifest holds seed and configuration,
its `inputs` what was asked. It may come from anywhere, so it is checked like any
other outside file.
"""

import json
import pathlib
from typing import NamedTuple

from specjax.launch import config as config_lib
from specjax.launch.job import Job
from specjax.launch.prompts import Conversation

_LARGEST = 256 * 2**20  # bytes; a run of 10 000 prompts stays below


class Record(NamedTuple):
  """A recorded run."""

  job: Job
  tokens: list[list[int]]
  manifest: dict


def load(path: str) -> Record:
  """Reads a record.

  Raises:
    ValueError: no such file, not a record of `experiments.decode`, or one without what a replay
      needs; names the file and what is wrong.
  """
  file = pathlib.Path(path)
  if not file.is_file():
    raise ValueError(f"--replay={path}: there is no such file")
  if file.stat().st_size > _LARGEST:
    raise ValueError(f"--replay={path}: a record has at most {_LARGEST} bytes")
  try:
    # The last line, so that the saved output of a run with --json is a record too.
    found = json.loads(file.read_text("utf-8").strip().splitlines()[-1])
    manifest, inputs = found["manifest"], found["inputs"]
    conversations = [
        Conversation(
            str(c["name"]), str(c["category"]), tuple(map(str, c["turns"])), str(c["source"]))
        for c in inputs["conversations"]]
    tokens = [[int(token) for token in answer] for answer in found["tokens"]]
    job = Job(
        config_lib.from_mapping(manifest["config"], path), int(manifest["seed"]), conversations,
        bool(inputs["apply_chat_template"]), [str(s) for s in inputs["stop"]])
  except (KeyError, TypeError, IndexError, AttributeError, RecursionError, json.JSONDecodeError,
          UnicodeDecodeError) as error:
    raise ValueError(
        f"--replay={path} is not a record of experiments.decode (written by --out or --json): "
        f"{type(error).__name__} {error}") from error
  if not conversations or not all(c.turns for c in conversations):
    raise ValueError(f"--replay={path}: the record holds no prompt")
  return Record(job, tokens, manifest)


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
      at = lambda some: some[place] if place < len(some) else None
      result.update(answer=answer, position=place, recorded=at(old), replayed=at(new))
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
    token = lambda value: "the end" if value is None else f"token {value}"
    lines = [
        f"replay: DIFFERS, first in answer {comparison['answer']} "
        f"at token {comparison['position']}: recorded {token(comparison['recorded'])}, "
        f"now {token(comparison['replayed'])}"]
  lines += [f"  {name}: recorded {before}, now {now}"
            for name, (before, now) in comparison["changed"].items()]
  return "\n".join(lines)
