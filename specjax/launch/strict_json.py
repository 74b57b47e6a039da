"""Records as strict JSON: no NaN, no Infinity, no numpy types."""

import dataclasses
import json
import math
import pathlib

import numpy as np


def dumps(value) -> str:
  """`value` as one line of JSON that every parser reads; see `plain`."""
  return json.dumps(plain(value), allow_nan=False, ensure_ascii=False)


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
