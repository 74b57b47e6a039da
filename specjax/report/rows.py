"""The rows of a sweep, checked: what each holds, or why it holds nothing."""

import collections
import json
import math
from typing import Any, NamedTuple

import numpy as np

from specjax.types import Error

AXES = ("drafter", "rule", "prompts", "temperature", "gamma", "batch_size")  # shown in this order
SUMMED = (  # of each answer; see `parts.Parts`
    "tokens", "seconds", "baseline_tokens", "baseline_seconds", "rounds", "emitted", "tested",
    "accepted", "lengths")


class Reading(NamedTuple):
  """A row that was measured."""

  axes: dict[str, Any]  # its setting without the seed; the numbers in it are checked
  answers: dict[tuple, list[np.ndarray]]  # (name, category, turn, occurrence) -> SUMMED, each 1-d
  pass_seconds: float  # of the target, NaN without costs
  window: float  # V(gamma + 1), likewise
  draft_step: float  # c
  steps: float  # drafting steps of a round
  drafting: float  # the share of rounds that had a draft
  identical: bool | None


class Failure(NamedTuple):
  """A row without numbers."""

  name: str
  axes: dict[str, Any]
  error: str


def read(rows: list) -> tuple[list[Reading], list[Failure]]:
  """The rows that hold a measurement, and those that do not; of one id the last row counts."""
  readings, failures = [], []
  for row in _last_of_each(rows):
    axes = _axes(row)
    if row.get("error") is not None:
      failures.append(Failure(str(row.get("id", "")), axes, str(row["error"])))
      continue
    try:
      readings.append(_reading(axes, row["result"]))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
      why = f"the row is malformed: {type(error).__name__}: {error}"
      failures.append(Failure(str(row.get("id", "")), axes, why))
  return readings, failures


def text(value) -> str:
  """The value of an axis as it is written everywhere."""
  if isinstance(value, str):
    return value
  return f"{value:g}" if isinstance(value, float) else json.dumps(value)


def _last_of_each(rows) -> list[dict]:
  rows = [row if isinstance(row, dict) else dict(error=f"not a row: {row!r:.60}") for row in rows]
  kept = {str(row["id"]) if "id" in row else place: row for place, row in enumerate(rows)}
  return list(kept.values())


def _axes(row) -> dict[str, Any]:
  """The axes in the order in which they are shown."""
  cell = row.get("cell")
  cell = {"batch_size": 1} | {str(k): v for k, v in cell.items()} if isinstance(cell, dict) else {}
  names = [name for name in AXES if name in cell]
  return {name: cell[name] for name in dict.fromkeys([*names, *sorted(cell)])}


def _reading(axes, result) -> Reading:
  # As far as a configuration goes: a line of theory is computed for every gamma up to the largest.
  for name, least, most in (("gamma", 0, 1024), ("batch_size", 1, 2**16)):
    if not isinstance(axes[name], int) or not least <= axes[name] <= most:
      raise Error(f"{name} is {axes[name]!r}")
  setting = {name: value for name, value in axes.items() if name != "seed"}
  setting["temperature"] = _number(axes["temperature"])
  costs, identical = result["costs"], result["identical_to_baseline"]
  costs = [math.nan] * 3 if costs is None else [
      _scalar(costs[name]) for name in ("pass_seconds", "window", "draft_step")]
  if identical not in (True, False, None):
    raise Error(f"identical_to_baseline is {identical!r}")
  return Reading(setting, _answers(result["prompts"]), *costs, _scalar(result["draft_steps"]),
                 _scalar(result["drafting_rounds"]), identical)


def _answers(prompts) -> dict[tuple, list[np.ndarray]]:
  seen, answers = collections.Counter(), {}
  for prompt in prompts:
    key = str(prompt["name"]), str(prompt["category"]), int(prompt["turn"])
    fields = [np.atleast_1d(_numbers(prompt[name])) for name in SUMMED]
    *scalars, tested, accepted, lengths = fields
    if any(len(field) != 1 for field in scalars):
      raise Error(f"prompt {key[0]!r} has a list where a number should be")
    if not len(tested) == len(accepted) == len(lengths) - 1:
      raise Error(f"prompt {key[0]!r} tested {len(tested)} positions, accepted "
                       f"{len(accepted)} and has {len(lengths)} lengths")
    answers[(*key, seen[key])] = fields
    seen[key] += 1
  if not answers:
    raise Error("no prompts")
  return answers


def _scalar(value) -> float:
  """A number; null is NaN."""
  return math.nan if value is None else _number(value)


def _number(value) -> float:
  numbers = _numbers(value)
  if numbers.ndim:
    raise Error(f"{value!r:.60} where a number should be")
  return float(numbers)


def _numbers(value) -> np.ndarray:
  """A number or a list of numbers as float64; raises Error if it is no count and no time."""
  numbers = np.asarray(value)
  if numbers.size and numbers.dtype.kind not in "iuf" or numbers.ndim > 1:
    raise Error(f"{value!r:.60} where numbers should be")
  numbers = numbers.astype(np.float64)
  if not np.isfinite(numbers).all() or (numbers < 0).any():
    raise Error(f"{value!r:.60} is not finite and at least 0")
  return numbers
