"""A Hugging Face model directory: JSON files and safetensors, read without torch.

Only data is read: no pickled weights, no code of the directory, no file outside it.
"""

import json
from pathlib import Path
from typing import Any

import safetensors

from specjax.loading.error import LoadError
from specjax.loading.tensors import Tensor

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_MAX_JSON = 1 << 26  # bytes; the tokenizers of large vocabularies have about 2^25
_FLOATS = ("F32", "F16", "BF16")
_INTEGERS = ("I64", "I32", "BOOL", "U8")


def read_json(path: Path) -> dict[str, Any]:
  """A JSON object.

  Raises:
    LoadError: the file cannot be read, is too large, or is not a JSON object.
  """
  try:
    if (size := path.stat().st_size) > _MAX_JSON:
      raise LoadError(f"{path}: {size} bytes is too large for a JSON file of a model.")
    value = json.loads(path.read_bytes())
  except OSError as error:
    raise LoadError(f"{path}: cannot be read: {error.strerror or error}.") from error
  except (ValueError, RecursionError) as error:
    if isinstance(error, LoadError):
      raise
    raise LoadError(f"{path}: not valid JSON: {error}.") from error
  if not isinstance(value, dict):
    raise LoadError(f"{path}: should hold a JSON object, found a {type(value).__name__}.")
  return value


def read_json_if_present(path: Path) -> dict[str, Any]:
  return read_json(path) if path.exists() else {}


def shards(directory: Path) -> list[Path]:
  """The safetensors files of a directory, as its index says.

  Raises:
    LoadError: there are none, or the index names something that is not a file beside it.
  """
  index = directory / _INDEX
  if not index.exists():
    if (directory / _SINGLE).exists():
      return [directory / _SINGLE]
    raise LoadError(f"{directory}: there is neither {_SINGLE} nor {_INDEX}.")
  names = read_json(index).get("weight_map")
  if not isinstance(names, dict) or not all(isinstance(x, str) for x in names.values()):
    raise LoadError(f"{index}: weight_map should map tensor names to file names.")
  paths = []
  for name in sorted(set(names.values())):
    if Path(name).name != name or not name.endswith(".safetensors"):
      raise LoadError(
          f"{index}: weight_map should name safetensors files of the same directory, found "
          f"{name!r:.200}.")
    paths.append(directory / name)
  return paths


def _lazy(path: Path, name: str, header, integers: tuple[str, ...]) -> Tensor:
  piece = header.get_slice(name)
  if name in integers:
    kinds, hint = _INTEGERS, ""
  else:
    kinds, hint = _FLOATS, " (quantised checkpoints are read from GGUF)"
  if (dtype := piece.get_dtype()) not in kinds:
    raise LoadError(
        f"{path}: the tensor {name} is stored as {dtype}; expected one of {', '.join(kinds)}"
        f"{hint}.")

  def read():
    with safetensors.safe_open(path, "numpy") as file:
      return file.get_tensor(name)

  return Tensor(tuple(piece.get_shape()), read, str(path))


def tensors(paths: list[Path], integers: tuple[str, ...] = ()) -> dict[str, Tensor]:
  """The tensors of safetensors files by name, unread.

  Args:
    paths: the files.
    integers: names of tensors that hold integers or booleans; all others hold floats.

  Raises:
    LoadError: a file is missing or damaged, holds another type, or repeats a name.
  """
  found = {}
  for path in paths:
    try:
      with safetensors.safe_open(path, "numpy") as header:
        for name in header.keys():
          if name in found:
            raise LoadError(f"{path}: the tensor {name} is also in {found[name].file}.")
          found[name] = _lazy(path, name, header, integers)
    except (OSError, safetensors.SafetensorError) as error:
      raise LoadError(f"{path}: not a usable safetensors file: {error}.") from error
  return found
