"""The outcomes of a sweep: those that hold a measurement, and why the others hold none."""

import json
from typing import Any, NamedTuple

from specjax.launch import config as config_lib
from specjax.launch.result import Outcome, Result
from specjax.types import Error


class Reading(NamedTuple):
  """A cell that was measured."""

  axes: dict[str, Any]  # its setting without the seed, the numbers among them checked
  result: Result


class Failure(NamedTuple):
  """A cell without numbers."""

  name: str
  axes: dict[str, Any]
  error: str


def read(outcomes: list[Outcome]) -> tuple[list[Reading], list[Failure]]:
  """The measured cells, and those without numbers; of one id the last outcome counts."""
  readings, failures = [], []
  for outcome in {each.id: each for each in outcomes}.values():
    error = outcome.error
    try:
      if error is None:
        readings.append(_reading(outcome))
    except Error as refused:
      error = f"the line is malformed: {refused}"
    if error is not None:
      failures.append(Failure(outcome.id, outcome.cell, error))
  return readings, failures


def text(value) -> str:
  """The value of an axis as it is written everywhere."""
  if isinstance(value, str):
    return value
  return f"{value:g}" if isinstance(value, float) else json.dumps(value)


def _reading(outcome: Outcome) -> Reading:
  """A measured cell; raises Error if its axes are no configuration, or it holds no answer."""
  axes = {name: value for name, value in outcome.cell.items() if name != "seed"}
  config = config_lib.from_mapping(
      {name: value for name, value in axes.items() if name in config_lib.FIELDS}, "its axes")
  if not isinstance(config.gamma, int):
    raise Error(f"gamma is {config.gamma!r}")
  if not outcome.result.prompts:
    raise Error("no prompts")
  numbers = dict(
      gamma=config.gamma, temperature=config.temperature, batch_size=config.batch_size)
  return Reading(axes | numbers, outcome.result)
