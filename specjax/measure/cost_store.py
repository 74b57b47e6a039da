"""Measured costs, kept in the cache folder so that they are measured once for each machine."""

import datetime
import math
import os
import pathlib
import sys
from typing import Iterable, NamedTuple

import jax
from absl import logging

from specjax import theory
from specjax.decode.state import capacity
from specjax.launch import record, strict_json
from specjax.launch.build import Setup
from specjax.launch.config import DecodeConfig
from specjax.loading import default
from specjax.measure import costs as costs_lib
from specjax.types import Error

_MAX_FILE_BYTES = 16384
_MAX_FILES = 256  # the oldest are deleted
_MAX_WIDTH = 1024  # rows of a pass


class Found(NamedTuple):
  """Costs, and when they were measured."""

  costs: theory.Costs
  kept: str | None  # the local time of an earlier measurement; None: measured just now


def load_or_measure(
    setup: Setup, config: DecodeConfig, prompts: list[list[int]],
    folder: pathlib.Path | None = None, again: bool = False) -> Found:
  """The costs of a setup on this device, overheads included.

  Args:
    setup: what `build` made of `config`; one that drafts, and does not stop early.
    config: the configuration.
    prompts: the rows that are decoded together, measured with if nothing is stored. Of them only
      the number and the capacity of the cache are part of what costs are kept under.
    folder: where they are kept; `costs` in the cache folder if not given.
    again: measure in any case. What is kept goes, for caches of other capacities too, since one
      noisy moment may be in all of it.
  """
  folder = folder or default.cache_directory() / "costs"
  key = _key(setup, config, prompts)
  name = record.digest({part: key[part] for part in key if part != "capacity"})[:32]
  path = folder / f"{name}-{key['capacity']}.json"
  if not again and (found := _read(path, key)):
    return found
  print("measuring what passes and drafts cost here; it is kept for the next time", file=sys.stderr)
  costs = costs_lib.with_overheads(
      costs_lib.measure(
          setup.speculative, setup.params, prompts, config.max_new_tokens, costs_lib.WIDTHS),
      setup.plain, setup.speculative, setup.params, prompts)
  _write(path, key, costs, replaced=folder.glob(f"{name}-*.json") if again else ())
  return Found(costs, None)


def _key(setup: Setup, config: DecodeConfig, prompts: list[list[int]]) -> dict:
  """All that costs depend on."""
  device = jax.devices()[0]
  longest = max(map(len, prompts)) + config.max_new_tokens
  return dict(
      platform=device.platform, device=device.device_kind, cores=len(os.sched_getaffinity(0)),
      jax=jax.__version__, jaxlib=jax.lib.__version__, models=setup.models, drafter=config.drafter,
      dtype=config.dtype, rows=len(prompts), strict=config.strict,
      capacity=capacity(longest, costs_lib.WIDTHS[-1]))


def _read(path: pathlib.Path, key: dict) -> Found | None:
  """What is stored; None if there is nothing, or, with a warning, nothing that can be used."""
  if not path.exists():
    return None
  try:
    if path.stat().st_size > _MAX_FILE_BYTES:
      raise Error(f"more than {_MAX_FILE_BYTES} bytes")
    found = strict_json.loads(path.read_bytes())
    if found["key"] != key:
      raise Error("the costs of something else")
    measured = datetime.datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    return Found(_checked(found["costs"], key["rows"]), measured.isoformat(" ", "minutes"))
  except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
    logging.warning("%s is no record of costs (%s): they are measured again", path, error)
    return None


def _checked(stored: dict, rows: int) -> theory.Costs:
  """The costs in a stored mapping, measured over so many rows and wide enough to choose by.

  Raises:
    ValueError, KeyError, TypeError, AttributeError: it holds something else.
  """
  if set(stored) != set(theory.Costs._fields):
    raise Error("not the numbers of costs")
  window = {int(width): _positive(cost) for width, cost in stored["window"].items()}
  if window.get(1) != 1 or not theory.MOST_GAMMA < max(window) <= _MAX_WIDTH or min(window) < 1:
    raise Error("not the costs of passes")
  numbers = {name: _positive(stored[name]) for name in stored if name not in ("window", "rows")}
  if type(stored["rows"]) is not int or stored["rows"] != rows:
    raise Error("the costs of another number of rows")
  return theory.Costs(window=window, rows=rows, **numbers)


def _positive(value) -> float:
  if type(value) not in (int, float) or not (0 < value < math.inf):
    raise Error(f"{value!r} is not a positive number")
  return float(value)


def _write(
    path: pathlib.Path, key: dict, costs: theory.Costs, replaced: Iterable[pathlib.Path]) -> None:
  """Keeps costs, in one step; what cannot be kept is measured again next time."""
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(replaced)
    strict_json.write(path, dict(key=key, costs=costs))
    kept = sorted(path.parent.glob("*.json"), key=lambda each: each.stat().st_mtime)
    _remove(kept[:-_MAX_FILES])
  except OSError as error:
    logging.warning("%s: costs cannot be kept there: %s", path, error)


def _remove(files: Iterable[pathlib.Path]) -> None:
  for file in files:
    file.unlink(missing_ok=True)
