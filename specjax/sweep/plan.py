"""The cells of a sweep, all of them checked before a model loads, and what they have in common."""

from typing import Mapping, NamedTuple, Sequence

from specjax import keys
from specjax.launch import build, config as config_lib, prompts, record, registry
from specjax.launch.strict_json import plain
from specjax.measure.job import Job
from specjax.sweep import grid as grid_lib
from specjax.types import Error

# What the results of a cell are told apart by; further axes where a sweep varies more.
ALWAYS = ("gamma", "temperature", "rule", "drafter", "seed", "prompts", "batch_size")


class Cell(NamedTuple):
  """One point of the grid."""

  id: str  # hexadecimal digits, the same whenever the same tokens are asked for
  axes: dict  # those of ALWAYS and every other axis of the sweep
  job: Job

  @property
  def name(self) -> str:
    """The cell in words."""
    return " ".join(f"{axis}={value}" for axis, value in self.axes.items())


class Plan(NamedTuple):
  """A sweep."""

  cells: list[Cell]
  base: dict  # what decides about the tokens and is the same in all cells
  axes: dict[str, list]  # the values that occur
  prompts: dict[str, str]  # name of a set -> sha256 of what it holds

  @property
  def varied(self) -> list[str]:
    """The axes with more than one value."""
    return [axis for axis, values in self.axes.items() if len(values) > 1]

  def label(self, cell: Cell) -> str:
    """The name of a cell, as far as it differs from those of others."""
    return " ".join(f"{axis}={cell.axes[axis]}" for axis in self.varied or ALWAYS)


def make(
    grid: grid_lib.Grid, settings: Mapping, source: str, seed: int, template: bool,
    stop: Sequence[str]) -> Plan:
  """The plan of a grid.

  Args:
    grid: the axes; `prompts` must be one of them.
    settings: the keys of a configuration; axes take their place.
    source: the file that they are from, for messages.
    seed: of every cell, unless `seed` is an axis.
    template, stop: as in `Job`.

  Raises:
    Error: an empty grid, a cell that occurs twice, a bad value in any cell, prompts that
      cannot be read. Whatever can be told without a model is told here.
  """
  points = grid_lib.points(grid)
  for name in (point.get("prompts") for point in points):
    if not isinstance(name, str):
      raise Error(
          "a sweep needs prompts: --prompts=SET,FILE.jsonl, or names among the axes of the "
          f"configuration file, prompts=(SET, ...); got {name!r}")
  sets = {name: prompts.load(name) for name in dict.fromkeys(p["prompts"] for p in points)}
  cells = [_cell({"seed": seed, **p}, settings, source, sets, template, list(stop)) for p in points]
  _refuse_twins(cells)
  names = list(cells[0].axes)
  axes = {axis: list(dict.fromkeys(cell.axes[axis] for cell in cells)) for axis in names}
  base = {key: value for key, value in plain(cells[0].job.config).items() if key not in axes}
  digests = {name: record.digest(_content(conversations)) for name, conversations in sets.items()}
  return Plan(
      cells, dict(config=base, apply_chat_template=template, stop=list(stop)), axes, digests)


def _cell(point, settings, source, sets, template, stop) -> Cell:
  mine = {axis: value for axis, value in point.items() if axis not in ("seed", "prompts")}
  config = config_lib.from_mapping({**settings, **mine}, source)
  build.refuse_impossible(config)
  registry.rule(config.rule)
  registry.check_drafter(config.drafter)
  keys.from_seed(point["seed"])
  found = {**point, **plain(config)}  # the values as they were understood: 1 is 1.0
  axes = {axis: found[axis] for axis in grid_lib.AXES if axis in ALWAYS or axis in point}
  job = Job(config, point["seed"], sets[point["prompts"]], template, stop)
  return Cell(_digest(job), axes, job)


def _digest(job: Job) -> str:
  """The id of a job: 64 bits of the digest of all that decides about its tokens."""
  return record.digest(dict(
      config=job.config, seed=job.seed, prompts=_content(job.conversations),
      apply_chat_template=job.template, stop=job.stop))[:16]


def _content(conversations: list[prompts.Conversation]) -> list:
  """What decides about the answers: the same file elsewhere holds the same prompts."""
  return [(c.name, c.category, c.turns) for c in conversations]


def _refuse_twins(cells: list[Cell]) -> None:
  seen = {}
  for cell in cells:
    # By value, since -0.0 is 0.0, and by id, since two names may be of equal prompts.
    for key in (cell.id, tuple(cell.axes.values())):
      if key in seen:
        raise Error(
            f"the grid holds a cell twice: {cell.name}"
            + (f" is {seen[key].name}" if seen[key].axes != cell.axes else ""))
      seen[key] = cell
