"""What a sweep came from, as far as the sweep.json beside its rows says."""

import json
import pathlib
import shlex

from specjax.report.document import Code, Table

_MAX_FILE_BYTES = 2**24


def blocks(folder: pathlib.Path) -> list[Code | Table]:
  """The command, then seed, commit, versions and device; nothing that is missing or malformed."""
  manifest = _manifest(folder / "sweep.json")
  command = manifest.get("command")
  found = []
  if isinstance(command, list) and command and all(isinstance(part, str) for part in command):
    module = pathlib.PurePath(command[0]).stem
    found.append(Code(shlex.join(["python", "-m", f"experiments.{module}", *command[1:]])))
  facts = {
      "seed": manifest.get("seed"), "commit": _commit(manifest.get("git")),
      "versions": _line(manifest.get("versions")), "device": _line(manifest.get("device"))}
  rows = [[name, str(value)] for name, value in facts.items() if value not in (None, "")]
  return found + ([Table(["", ""], rows)] if rows else [])


def _manifest(path: pathlib.Path) -> dict:
  try:
    if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
      return {}
    record = json.loads(path.read_text(encoding="utf-8"))
    return record["manifest"] if isinstance(record["manifest"], dict) else {}
  except (OSError, ValueError, KeyError, TypeError, RecursionError):
    return {}


def _commit(git) -> str | None:
  if not isinstance(git, dict) or not isinstance(git.get("commit"), str):
    return None
  return git["commit"] + (" with uncommitted changes" if git.get("dirty") else "")


def _line(facts) -> str | None:
  if not isinstance(facts, dict):
    return None
  return ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
