"""Records as strict JSON: no NaN, no Infinity, no numpy types."""

import dataclasses
import json
import math
import os
import pathlib
import tempfile

import numpy as np

from specjax.types import Error


def dumps(value, indent: int | None = None) -> str:
  """`value` as JSON that every parser reads, one line without `indent`; see `plain`.

  It is ASCII, so that every terminal and file can take it, also half of a surrogate pair, which is
  how Python has a byte of a command line that is not UTF-8.
  """
  return json.dumps(plain(value), allow_nan=False, indent=indent)


def loads(text: str | bytes):
  """The value that JSON from outside holds; all its numbers fit a float64.

  Raises:
    Error: it is not strict JSON, nested without end, or holds a number beyond all bounds.
  """
  try:
    return json.loads(
        text, parse_constant=_refuse, parse_float=_finite, parse_int=lambda digits: _finite(
            digits, int))
  except (ValueError, OverflowError, RecursionError) as error:
    raise Error(f"not JSON: {' '.join(str(error).split())[:200]}") from error


def write(path: pathlib.Path, value, indent: int | None = None) -> None:
  """Writes a file whole or not at all, over one that is there.

  Raises:
    OSError: it cannot be written; the earlier file is as it was.
  """
  fresh = None
  try:
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f"{path.name}.", delete=False, encoding="utf-8") as file:
      fresh = pathlib.Path(file.name)
      file.write(dumps(value, indent) + "\n")
      file.flush()
      os.fsync(file.fileno())
    fresh.chmod(0o644)
    fresh.replace(path)
  except OSError as error:
    if fresh:
      fresh.unlink(missing_ok=True)
    raise OSError(error.errno, error.strerror, str(path)) from error


def plain(value):
  """`value` made of dict, list, str, int, float, bool and None alone.

  Numbers that JSON cannot hold (NaN, infinities) become None; NamedTuples and dataclasses become
  dicts; arrays become nested lists.

  Raises:
    TypeError: a type without a plain form, such as a function.
  """
  if value is None or isinstance(value, (str, bool, int)):
    return value
  if isinstance(value, float):
    return value if math.isfinite(value) else None
  if isinstance(value, dict):
    return {str(key): plain(item) for key, item in value.items()}
  if hasattr(value, "_asdict"):
    return plain(value._asdict())
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
  if isinstance(value, (list, tuple)):
    return [plain(item) for item in value]
  if isinstance(value, pathlib.PurePath):
    return str(value)
  if isinstance(value, np.generic) or hasattr(value, "__array__"):
    return plain(np.asarray(value).tolist())
  raise TypeError(f"a value of type {type(value).__name__} has no form in JSON: {value!r}")


def _finite(digits: str, kind=float):
  number = kind(digits)
  if not math.isfinite(number):
    raise Error(f"{digits} is beyond all bounds")
  return number


def _refuse(name: str):
  raise Error(f"{name} is not strict JSON")
