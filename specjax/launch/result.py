"""What a decoding run measured, and what became of a cell of a sweep: records with their own JSON.

The JSON of a `Result` is what `experiments.decode` prints, that of an `Outcome` a line of
results.jsonl. Unknown numbers are NaN, null in JSON. `from_json` is the one place where they are
checked: whoever holds a record need not look again.
"""

import dataclasses
import math
import types
from typing import Any

from specjax.launch import strict_json
from specjax.types import Error

NAN = math.nan
_CALLED = {int: "a count", str: "a text", bool: "true or false"}


@dataclasses.dataclass(frozen=True)
class Divergence:
  """The first difference of one answer from plain decoding."""

  name: str
  turn: int
  position: int  # in the answer, from 0
  tokens: tuple[int | None, int | None]  # speculative and plain; None: the text had ended
  margin: float  # the target's largest logit minus its second largest there


@dataclasses.dataclass(frozen=True)
class PromptResult:
  """What one answer adds to the sums of a run; counts as in `stats.Counts`, of one row.

  Raises:
    Error: lists of counts whose lengths do not fit each other.
  """

  name: str
  category: str
  turn: int
  tokens: int  # of the speculative answer
  seconds: float
  baseline_tokens: int  # of the plain one
  baseline_seconds: float
  rounds: int
  emitted: int
  drafting: int
  drafted: list[int]  # [D]
  tested: list[int]  # [D]
  accepted: list[int]  # [D]
  lengths: list[int]  # [D + 1]

  def __post_init__(self):
    depth = len(self.tested)
    if not depth == len(self.drafted) == len(self.accepted) == len(self.lengths) - 1:
      raise Error(
          f"prompt {self.name!r} drafted {len(self.drafted)} positions, tested {depth}, accepted "
          f"{len(self.accepted)} and has {len(self.lengths)} lengths")


@dataclasses.dataclass(frozen=True)
class CostResult:
  """Measured costs as far as a prediction needs them; see `theory.Costs`."""

  pass_seconds: float = NAN
  window: float = NAN  # V(nodes + 1)
  draft_step: float = NAN  # c
  rows: int = 1  # decoded together


@dataclasses.dataclass(frozen=True)
class Result:
  """The numbers of a run; for their definitions see `summary.table`.

  A number that an older version did not write has its default, "not known".
  """

  tokens: list[list[int]] = dataclasses.field(default_factory=list)  # of every answer
  text: list[str] = dataclasses.field(default_factory=list)
  prompts: list[PromptResult] = dataclasses.field(default_factory=list)
  nodes: int = 0  # of a draft; 0: plain decoding
  tau: float = NAN
  tau_macro: float = NAN
  alpha: float = NAN
  acceptance_by_position: list[float] = dataclasses.field(default_factory=list)
  acceptance_by_position_joint: list[float] = dataclasses.field(default_factory=list)
  rounds: int = 0
  tokens_per_second: float = NAN
  baseline_tokens_per_second: float = NAN
  speedup: float = NAN
  speedup_interval: tuple[float, float] | None = None  # 95 %, over prompts
  predicted_speedup: float = NAN
  drafting_rounds: float = NAN  # the share of rounds that had a draft
  drafted_tokens: float = NAN  # a round
  draft_steps: float = NAN  # a round
  costs: CostResult | None = None
  identical_to_baseline: bool | None = None  # None: independent samples
  divergences: list[Divergence] | None = None  # likewise

  def to_json(self) -> dict[str, Any]:
    """The record as plain JSON; `divergences` is a key only where texts must be identical."""
    plain = strict_json.plain(self)
    if self.divergences is None:
      del plain["divergences"]
    return plain

  @classmethod
  def from_json(cls, value) -> "Result":
    """The record in a value from outside; keys of other records beside it are ignored.

    Raises:
      Error: names the key that is missing or does not fit.
    """
    return _record(cls, value)


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What became of one cell of a sweep.

  Raises:
    Error: neither a result nor an error, or both.
  """

  id: str  # of the cell
  cell: dict[str, Any]  # its axes
  error: str | None
  result: Result | None
  wall_seconds: float
  finished: str  # ISO 8601, UTC

  def __post_init__(self):
    if (self.error is None) == (self.result is None):
      raise Error("either a result or an error is needed")

  def to_json(self) -> dict[str, Any]:
    """The line as plain JSON, without the texts, which its tokens give again."""
    result = None
    if self.result is not None:
      result = {key: value for key, value in self.result.to_json().items() if key != "text"}
    return strict_json.plain(vars(self) | {"result": result})

  @classmethod
  def from_json(cls, value) -> "Outcome":
    """The record in a line from outside.

    Raises:
      Error: names what is missing or does not fit.
    """
    return _record(cls, value)


def _record(kind: type, value):
  """A dataclass from a dict of its fields."""
  value, found = _object(value), {}
  if kind is PromptResult:
    value = _with_drafts(value)
  for field in dataclasses.fields(kind):
    name, default = field.name, (field.default, field.default_factory)
    is_needed = default == (dataclasses.MISSING, dataclasses.MISSING)
    if name not in value and not is_needed:
      continue
    if name not in value or value[name] is None and field.type is float and is_needed:
      raise Error(f"{name} is missing")
    try:
      found[name] = _read(field.type, value[name])
    except Error as error:
      raise Error(f"{name}: {error}") from None
  return kind(**found)


def _read(wanted, value):
  """`value` as the type `wanted` of a field; raises Error if it is none."""
  if isinstance(wanted, types.UnionType):  # X | None
    return None if value is None else _read(wanted.__args__[0], value)
  if wanted is float:
    return NAN if value is None else _number(value)
  if wanted is int and type(value) is int and not 0 <= value < 2**63:
    raise Error(f"{value!r:.60} is no count")
  if wanted in (int, str, bool):
    if type(value) is not wanted:
      raise Error(f"{value!r:.60} where {_CALLED[wanted]} should be")
    return value
  if wanted == dict[str, Any]:
    return _object(value)
  if dataclasses.is_dataclass(wanted):
    return _record(wanted, value)
  if not isinstance(value, (list, tuple)):
    raise Error(f"{value!r:.60} where a list should be")
  if wanted.__origin__ is tuple:
    kinds = wanted.__args__
    if len(kinds) != len(value):
      raise Error(f"{value!r:.60} where {len(kinds)} values should be")
    return tuple(map(_read, kinds, value))
  return [_read(wanted.__args__[0], each) for each in value]


def _object(value) -> dict:
  if not isinstance(value, dict):
    raise Error(f"{value!r:.60} where an object should be")
  return value


def _number(value) -> float:
  """A finite number of at least 0, which all measured quantities are."""
  if not isinstance(value, (int, float)) or isinstance(value, bool):
    raise Error(f"{value!r:.60} where a number should be")
  if not 0 <= value < 2**1023:
    raise Error(f"{value!r:.60} is not finite and at least 0")
  return float(value)


def _with_drafts(value: dict) -> dict:
  """A prompt's counts; where an old record lacks those of drafts, from its chains' tested nodes.

  The first node of a chain is judged in every round that has a draft.
  """
  drafted = value.get("drafted", value.get("tested"))
  first = drafted[0] if isinstance(drafted, list) and drafted else 0
  return {"drafted": drafted, "drafting": first} | value
