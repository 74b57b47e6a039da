"""From `--config=FILE --config.KEY=VALUE` to a frozen, validated record.

`configs/*.py` return an ml_collections ConfigDict, which is what absl flags can override; nothing
else of the project sees one. `read` turns it into a `DecodeConfig` at once, and whoever holds a
`DecodeConfig` need not check anything again.
"""

import dataclasses
import os
import pathlib
import re
import traceback
import typing

from absl import flags
from ml_collections import config_dict, config_flags

from specjax.launch.errors import closest, nearest
from specjax.types import Error

DTYPES = ("float32", "bfloat16")
# Beyond these a run would not end, or would take all memory before it says so.
_MOST_GAMMA, _MOST_TOKENS, _MOST_ROWS = 1024, 2**20, 2**16
AUTO = "auto"  # the gamma that `launch.auto` replaces by a number
_ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_FILE = _ROOT / "configs" / "smollm2.py"

# ml_collections searches the command line for overrides; left alone it would read sys.argv, and
# that before flags are parsed.
_command_line: list[str] = []


def _key(default, meaning: str):
  """A field of `DecodeConfig`; `meaning` is what --help says of it."""
  return dataclasses.field(default=default, metadata=dict(meaning=meaning))


@dataclasses.dataclass(frozen=True)
class DecodeConfig:
  """One decoding experiment; every value is checked when the record is made.

  Raises:
    Error: names the key, the value and what is allowed.
  """

  target: str = _key("", "a GGUF file, a Hugging Face directory, table:ORDER; empty: the default "
                     "model")
  drafter: str = _key("ngram", "ngram, layer_skip:LAYERS, or a second model: its path, smollm2, "
                      "table:ORDER")
  rule: str = _key("token", "one of experiments.certify, with its numbers: lenient:0.8")
  gamma: int | str = _key(4, "tokens drafted a round; 0: plain decoding; auto: the fastest here")
  stop_below: float = _key(0.0, "a draft less likely than this gets no further token; 0: off")
  tree: str = _key("", "empty: drafts are chains")
  temperature: float = _key(0.0, "0: the most likely token")
  top_k: int = _key(0, "keeps the so many most likely tokens; 0: off")
  top_p: float = _key(1.0, "keeps the most likely tokens up to this probability; 1: off")
  min_p: float = _key(0.0, "keeps tokens at least so likely, relative to the likeliest; 0: off")
  max_new_tokens: int = _key(128, "the longest answer")
  batch_size: int = _key(1, "prompts decoded together")
  strict: bool = _key(False, "every target pass through one window: bitwise equal logits")
  dtype: str = _key("float32", " or ".join(DTYPES))

  def __post_init__(self):
    for field in dataclasses.fields(self):
      _check_type(field, getattr(self, field.name))
    _check(self.gamma == AUTO or type(self.gamma) is int and 0 <= self.gamma <= _MOST_GAMMA,
           "gamma", self.gamma, f"from 0 (plain decoding) to {_MOST_GAMMA}, or {AUTO!r}")
    _check(0 <= self.stop_below <= 1, "stop_below", self.stop_below, "from 0 (off) to 1")
    _check(0 <= self.temperature < float("inf"), "temperature", self.temperature, "0 or more")
    _check(0 <= self.top_k < 2**31, "top_k", self.top_k, "from 0 (off) to 2^31 - 1")
    _check(0 < self.top_p <= 1, "top_p", self.top_p, "above 0 and at most 1 (off)")
    _check(0 <= self.min_p <= 1, "min_p", self.min_p, "from 0 (off) to 1")
    _check(1 <= self.max_new_tokens <= _MOST_TOKENS, "max_new_tokens", self.max_new_tokens,
           f"from 1 to {_MOST_TOKENS}")
    _check(1 <= self.batch_size <= _MOST_ROWS, "batch_size", self.batch_size,
           f"from 1 to {_MOST_ROWS}")
    _check(self.dtype in DTYPES, "dtype", self.dtype, " or ".join(DTYPES))
    _check(self.drafter != "", "drafter", self.drafter, "a name or the path of a model")
    _check(self.rule != "", "rule", self.rule, "a name")


def from_mapping(mapping, source: str = "config") -> DecodeConfig:
  """A `DecodeConfig` from a dict-like of its fields; those that are missing take their defaults.

  Raises:
    Error: an unknown key (names `source` and the nearest key) or a bad value.
  """
  known = [field.name for field in dataclasses.fields(DecodeConfig)]
  for key in mapping:
    if key not in known:
      raise Error(f"{source}: unknown key {key!r}{nearest(str(key), known)}")
  return DecodeConfig(**{key: _whole_as_float(key, mapping[key]) for key in mapping})


def define(fallback: pathlib.Path | None = DEFAULT_FILE) -> flags.FlagHolder:
  """Defines --config with its --config.KEY overrides; `fallback` is read if no file is named."""
  keys = [f"{key.name}: {key.metadata['meaning']}" for key in dataclasses.fields(DecodeConfig)]
  holder = config_flags.DEFINE_config_file(
      "config", None,
      "\n".join(["experiment file. --config.KEY=VALUE changes one of its keys:", *keys]),
      sys_argv=_command_line)
  flag = flags.FLAGS["config"]
  flag.parser = _FileParser(fallback)
  flag.default_as_str = repr(str(fallback.relative_to(_ROOT))) if fallback else None
  return holder


def command_line(argv: list[str]) -> list[str]:
  """The command line to parse: `argv`, with the fallback of --config if it names no file."""
  _command_line[:] = argv
  if "config" in flags.FLAGS:
    parser = flags.FLAGS["config"].parser
    parser.named = any(re.match(r"--?config(=|$)", argument) for argument in argv)
    if not parser.named and parser.fallback:
      _command_line.insert(1, f"--config={parser.fallback}")
  return list(_command_line)


def given() -> list[str]:
  """The flags of the command line that say something of the configuration, by name."""
  overrides = [name for name in flags.FLAGS if re.match(r"config\.", name)]
  return ["config"] * flags.FLAGS["config"].parser.named + overrides


def read(holder: flags.FlagHolder) -> DecodeConfig:
  """The validated configuration of this run.

  Raises:
    Error: no such file, an unknown key, a bad value.
  """
  return from_mapping(*unchecked(holder))


def unchecked(holder: flags.FlagHolder) -> tuple[dict, str]:
  """The keys of this run's configuration as they were given, and the file that they are from.

  Raises:
    Error: no such file.
  """
  path = flags.FLAGS[holder.name].config_filename
  _existing(path)
  given = holder.value.to_dict()
  if re.fullmatch("[0-9]{1,9}", str(given.get("gamma"))):  # see `_let_be_a_word`
    given["gamma"] = int(given["gamma"])
  return given, path


def unknown_key(error: AttributeError | KeyError) -> Error:
  """What ml_collections says of an unknown --config.KEY, as a message for the user."""
  text = str(error)
  key = (re.search(r"lookup: ([\w.]+)", text) or re.search(r"([\w.]+)", text)).group(1)
  return Error(
      f"--config.{key}: unknown key {key!r}{nearest(key, flags.FLAGS['config'].parser.keys)}")


def unknown_flag(error: flags.UnrecognizedFlagError) -> Error:
  """What absl says of an unknown flag, with how to write it if it is a key of the configuration."""
  keys = flags.FLAGS["config"].parser.keys if "config" in flags.FLAGS else ()
  close = closest(error.flagname, [key for key in keys if key not in flags.FLAGS])
  hint = f"; a key of the configuration is given as --config.{close}=VALUE" if close else ""
  return Error(f"{error}{hint}")


class _FileParser(config_flags.config_flags.ConfigFileFlagParser):
  """Says at once, in one paragraph, what is wrong with a configuration file."""

  def __init__(self, fallback: pathlib.Path | None):
    super().__init__("config")
    self.fallback = fallback
    self.named = False  # on the command line
    self.keys: list[str] = []

  def parse(self, path):
    _existing(path)
    try:
      parsed = super().parse(path)
      if not isinstance(parsed, config_dict.ConfigDict):
        raise TypeError(f"get_config gives a ConfigDict, not a {type(parsed).__name__}")
      self.keys = list(parsed)
      _let_be_a_word(parsed, "gamma")
      return parsed
    except (Exception, SystemExit) as error:  # the file is a program: anything can happen in it
      lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
      where = f"line {lines[-1]}: " if lines else ""
      told = str(error).strip().splitlines() or ["it gave no reason"]
      raise Error(f"{where}{type(error).__name__}: {told[-1]}") from error


def _let_be_a_word(parsed, key: str):
  """ml_collections takes a key's type from the file; as text, 4 can be overridden by `auto`."""
  if isinstance(parsed, config_dict.ConfigDict) and type(parsed.get(key)) is int:
    with parsed.unlocked(), parsed.ignore_type():
      parsed[key] = str(parsed[key])


def _existing(path: str):
  file = pathlib.Path(path.split(":")[0])
  if not file.is_file():
    files = [*file.parent.glob("*.py"), *DEFAULT_FILE.parent.rglob("[a-z]*.py")]
    by_name = {each.stem: os.path.relpath(each) for each in files}
    close = closest(file.stem, by_name)
    hint = f"; did you mean {by_name[close]!r}?" if close else ""
    raise Error(f"no configuration file {path!r} in {pathlib.Path.cwd()}{hint}")


def _whole_as_float(key: str, value):
  kind = DecodeConfig.__dataclass_fields__[key].type
  # A whole number beyond all floats stays one, to be refused with its name.
  return float(value) if kind is float and type(value) is int and abs(value) < 2**64 else value


def _check_type(field, value):
  # bool is an int to Python; gamma=True is a mistake all the same
  kinds = typing.get_args(field.type) or (field.type,)
  if type(value) not in kinds:
    names = " or ".join(kind.__name__ for kind in kinds)
    raise Error(f"config.{field.name} is a {names}, got {value!r}")


def _check(ok: bool, key: str, value, allowed: str):
  if not ok:
    raise Error(f"config.{key} must be {allowed}, got {value!r}")
