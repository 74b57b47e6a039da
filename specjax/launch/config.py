"""From `--config=FILE --config.KEY=VALUE` to a frozen, validated record.

The files of `configs/` return an ml_collections ConfigDict; every key is an absl flag besides,
whose value takes the place of the file's. `read` turns both into a `DecodeConfig` at once, and
whoever holds a `DecodeConfig` need not check anything again. `FIELDS` is the schema as data.
"""

import dataclasses
import importlib.machinery
import importlib.util
import math
import os
import pathlib
from typing import Any, Mapping, NamedTuple

from absl import flags
from ml_collections import config_dict

from specjax.launch import registry
from specjax.launch.errors import closest, nearest, told
from specjax.types import Error

DTYPES = ("float32", "bfloat16")
AUTO = "auto"  # the gamma that `measure.auto` replaces by a number
_ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_FILE = _ROOT / "configs" / "smollm2.py"


class Limits(NamedTuple):
  """The numbers that a key takes. Beyond them a run would not end, or would take all memory."""

  least: float
  most: float = math.inf
  above: bool = False  # `least` itself is outside

  def hold(self, value: float) -> bool:
    enough = value > self.least if self.above else value >= self.least
    return enough and value <= self.most and value < math.inf

  def __str__(self):
    if self.most == math.inf:
      return f"{self.least} or more"
    within = "above {} and at most {}" if self.above else "from {} to {}"
    return within.format(self.least, self.most)


class Field(NamedTuple):
  """One key of a configuration."""

  name: str
  kind: type  # str, int, float or bool
  default: Any
  meaning: str  # what --help says of it
  limits: Limits | None  # of a number
  words: tuple[str, ...]  # what a text may be, anything if empty; beside numbers, for a number

  @property
  def allowed(self) -> str:
    """What the key takes, in words."""
    kinds = {int: " (an integer)", float: "", bool: "true or false", str: ""}
    numbers = f"{self.limits or ''}{kinds[self.kind]}"
    return ", or ".join(filter(None, [numbers, " or ".join(map(repr, self.words))])) or "a text"

  def check(self, value) -> None:
    """Raises Error if the key does not take the value."""
    ok = type(value) is self.kind  # bool is an int to Python; gamma=True is a mistake all the same
    if type(value) is str and self.words:
      ok = value in self.words
    elif ok and self.limits:
      ok = self.limits.hold(value)
    if not ok:
      raise Error(f"config.{self.name} must be {self.allowed}, got {value!r}")

  def parse(self, text: str):
    """The value that a text of a command line means; what means none stays, for `check`."""
    if self.kind is bool:
      return {"true": True, "false": False}.get(text.lower(), text)
    try:
      return self.kind(text)
    except ValueError:
      return text


def _key(default, meaning: str, limits: Limits | None = None, words: tuple[str, ...] = ()):
  return dataclasses.field(
      default=default, metadata=dict(meaning=meaning, limits=limits, words=words))


@dataclasses.dataclass(frozen=True)
class DecodeConfig:
  """One decoding experiment; every value is checked when the record is made.

  Raises:
    Error: names the key, the value and what is allowed.
  """

  target: str = _key(
      "", "a GGUF file, a Hugging Face directory, or table:ORDER; empty: the default model")
  drafter: str = _key("ngram", f"what drafts:\n{registry.drafters_help()}\n ")
  rule: str = _key("token", f"how drafts are verified: {registry.rules_help()}")
  gamma: int | str = _key(
      4, f"tokens drafted a round; 0: plain decoding; {AUTO}: as many as are fastest here",
      Limits(0, 1024), (AUTO,))
  stop_below: float = _key(
      0.0, "ends a draft before it becomes less likely than this; 0: off", Limits(0, 1))
  tree: str = _key("", "empty: drafts are chains")
  temperature: float = _key(0.0, "0: always the most likely token", Limits(0))
  top_k: int = _key(0, "keeps the k most likely tokens; 0: off", Limits(0, 2**31 - 1))
  top_p: float = _key(
      1.0, "keeps the most likely tokens up to this total probability; 1: off",
      Limits(0, 1, above=True))
  min_p: float = _key(
      0.0, "drops tokens below this fraction of the largest probability; 0: off", Limits(0, 1))
  max_new_tokens: int = _key(128, "length of the longest answer", Limits(1, 2**20))
  batch_size: int = _key(1, "prompts decoded together", Limits(1, 2**16))
  strict: bool = _key(False, "every target pass through one window: bitwise equal logits")
  dtype: str = _key("float32", f"of the weights: {' or '.join(DTYPES)}", words=DTYPES)

  def __post_init__(self):
    for field in FIELDS.values():
      field.check(getattr(self, field.name))
    for name in ("drafter", "rule"):
      if not getattr(self, name):
        raise Error(f"config.{name} must be a name, got ''")


FIELDS: dict[str, Field] = {
    field.name: Field(field.name, type(field.default), field.default, **field.metadata)
    for field in dataclasses.fields(DecodeConfig)}
AXES = (*FIELDS, "seed", "prompts")  # what a sweep may vary


def from_mapping(mapping: Mapping, source: str = "config") -> DecodeConfig:
  """A `DecodeConfig` from a mapping of its fields; those that are missing take their defaults.

  Raises:
    Error: an unknown key (names `source` and the nearest key) or a bad value.
  """
  for key in mapping:
    if key not in FIELDS:
      raise Error(f"{source}: unknown key {key!r}{nearest(str(key), FIELDS)}")
  return DecodeConfig(**{key: _whole_as_float(key, mapping[key]) for key in mapping})


def _whole_as_float(key: str, value):
  # A whole number beyond all floats stays one, to be refused with its name.
  whole = FIELDS[key].kind is float and type(value) is int and abs(value) < 2**64
  return float(value) if whole else value


def define(fallback: pathlib.Path | None = DEFAULT_FILE) -> flags.FlagHolder:
  """Defines --config and --config.KEY for every key; `fallback` is read if no file is named."""
  holder = flags.DEFINE_string(
      "config", fallback and os.path.relpath(fallback),
      "experiment file; its values take the place of the defaults of the keys, and "
      "--config.KEY=VALUE that of both")
  for field in FIELDS.values():
    default = str(field.default).lower() or "empty"
    define_key = flags.DEFINE_bool if field.kind is bool else flags.DEFINE_string
    define_key(f"config.{field.name}", None, f"{field.meaning} (default: {default})")
  if fallback is None:
    flags.register_validator(
        "config", lambda path: path is not None or not given(),
        "--config.KEY changes a value of a file, and --config=FILE should name it")
  return holder


def _flags() -> list[str]:
  """The flags of the keys, where `define` has defined them."""
  return [name for name in (f"config.{key}" for key in FIELDS) if name in flags.FLAGS]


def given() -> list[str]:
  """The flags of the command line that say something of the configuration, by name."""
  return [name for name in ("config", *_flags()) if flags.FLAGS[name].present]


def read(holder: flags.FlagHolder) -> DecodeConfig:
  """The validated configuration of this run.

  Raises:
    Error: no such file, one that fails, an unknown key, a bad value.
  """
  return from_mapping(*unchecked(holder))


def unchecked(holder: flags.FlagHolder) -> tuple[dict, str]:
  """The keys of this run's configuration as they were given, and the file that they are from.

  Raises:
    Error: no such file, or one that fails.
  """
  keys = _load(holder.value)
  for field in FIELDS.values():
    if (value := flags.FLAGS[f"config.{field.name}"].value) is not None:
      keys[field.name] = value if field.kind is bool else field.parse(value)
  return keys, holder.value


def unknown_flag(error: flags.UnrecognizedFlagError) -> Error:
  """What absl says of an unknown flag, with how to write it if it is a key of the configuration."""
  prefix, _, key = error.flagname.partition("config.")
  known = [name.removeprefix("config.") for name in _flags()]
  if known and not prefix:
    return Error(f"--{error.flagname}: unknown key {key!r}{nearest(key, known)}")
  close = closest(error.flagname, [key for key in known if key not in flags.FLAGS])
  hint = f"; a key of the configuration is given as --config.{close}=VALUE" if close else ""
  return Error(f"{error}{hint}")


def _load(path: str) -> dict:
  """What `get_config` of a file gives; the file is a program: anything can happen in it."""
  _refuse_missing(path)
  try:
    spec = importlib.util.spec_from_loader(
        "config_file", importlib.machinery.SourceFileLoader("config_file", path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    keys = module.get_config()
    if not isinstance(keys, config_dict.ConfigDict):
      raise TypeError(f"get_config gives a ConfigDict, not a {type(keys).__name__}")
    return keys.to_dict()
  except (Exception, SystemExit) as error:
    raise Error(f"--config={path}: {told(error)}") from error


def _refuse_missing(path: str):
  file = pathlib.Path(path)
  if not file.is_file():
    files = [*file.parent.glob("*.py"), *DEFAULT_FILE.parent.rglob("[a-z]*.py")]
    by_name = {each.stem: os.path.relpath(each) for each in files}
    close = closest(file.stem, by_name)
    hint = f"; did you mean {by_name[close]!r}?" if close else ""
    raise Error(f"--config: no configuration file {path!r} in {pathlib.Path.cwd()}{hint}")
