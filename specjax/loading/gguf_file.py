"""The container format GGUF: metadata and tensors, nothing about models.

The header is parsed here rather than by `gguf.GGUFReader` because that class trusts every count and
offset of the file and makes a numpy array of each string, which costs two seconds for a vocabulary
of fifty thousand. The numbers are decoded by the `gguf` package.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import math
import os
import struct
from typing import Any, NamedTuple

import gguf
import numpy as np

from specjax.loading.error import LoadError
from specjax.loading.tensors import Tensor

_MAX_STRING = 1 << 24  # bytes; chat templates are the longest strings of real files
_MAX_NAME = 1 << 10  # bytes of a metadata key or a tensor name
_MAX_ITEMS = 1 << 22  # of an array, and tensors of a file
_MAX_KEYS = 1 << 16
_MAX_DIMS = 4

_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?",
    10: "<u8", 11: "<i8", 12: "<f8",
}


class File(NamedTuple):
  """What a GGUF file holds. Strings, numbers, booleans and lists of them; lazy tensors."""

  path: str
  metadata: dict[str, Any]
  tensors: dict[str, Tensor]


class _Cursor:
  """Reads forward through a file's bytes and refuses to leave them."""

  def __init__(self, path: str, data: np.ndarray):
    self.path, self.data, self.at = path, data, 0

  def fail(self, problem: str):
    raise LoadError(f"{self.path}: not a usable GGUF file: {problem} (at byte {self.at}).")

  def take(self, size: int, what: str) -> np.ndarray:
    left = self.data.size - self.at
    if size > left:
      self.fail(
          f"{what} needs {size} bytes, but only {left} are left; the file is cut off or damaged")
    self.at += size
    return self.data[self.at - size:self.at]

  def number(self, form: str, what: str):
    return struct.unpack(form, self.take(struct.calcsize(form), what))[0]

  def count(self, form: str, limit: int, what: str) -> int:
    value = self.number(form, what)
    if value > limit:
      self.fail(f"{what} is {value}, more than the {limit} that any real file has")
    return value

  def string(self, what: str, limit: int = _MAX_STRING) -> str:
    raw = self.take(self.count("<Q", limit, f"the length of {what}"), what)
    try:
      return raw.tobytes().decode()
    except UnicodeDecodeError:
      self.fail(f"{what} is not UTF-8 text")

  def value(self, kind: int, what: str):
    if kind in _SCALARS:
      dtype = np.dtype(_SCALARS[kind])
      return self.take(dtype.itemsize, what).view(dtype)[0].item()
    if kind == _STRING:
      return self.string(what)
    if kind == _ARRAY:
      return self.array(what)
    self.fail(f"{what} has the unknown type {kind}")

  def array(self, what: str) -> list:
    kind = self.number("<I", f"the item type of {what}")
    size = self.count("<Q", _MAX_ITEMS, f"the length of {what}")
    if kind in _SCALARS:
      dtype = np.dtype(_SCALARS[kind])
      return self.take(size * dtype.itemsize, what).view(dtype).tolist()
    if kind == _STRING:
      return [self.string(what) for _ in range(size)]
    self.fail(f"{what} is an array of the unsupported item type {kind}")


class _Entry(NamedTuple):
  """A tensor's line in the header: `shape` slowest axis first, `offset` from the data's start."""

  name: str
  shape: tuple[int, ...]
  kind: int
  offset: int


def _read_metadata(cursor: _Cursor, count: int) -> dict[str, Any]:
  metadata = {}
  for _ in range(count):
    key = cursor.string("a metadata key", _MAX_NAME)
    if key in metadata:
      cursor.fail(f"the metadata key {key!r} appears twice")
    kind = cursor.number("<I", f"the type of {key!r}")
    metadata[key] = cursor.value(kind, f"the value of {key!r}")
  return metadata


def _read_entry(cursor: _Cursor) -> _Entry:
  name = cursor.string("a tensor name", _MAX_NAME)
  dims = cursor.count("<I", _MAX_DIMS, f"the number of dimensions of {name!r}")
  shape = [cursor.number("<Q", f"the shape of {name!r}") for _ in range(dims)]
  kind = cursor.number("<I", f"the type of {name!r}")
  return _Entry(name, tuple(reversed(shape)), kind, cursor.number("<Q", f"the offset of {name!r}"))


def _tensor(cursor: _Cursor, entry: _Entry, start: int) -> Tensor:
  """Checks an entry against the file and makes it readable."""
  try:
    kind = gguf.GGMLQuantizationType(entry.kind)
    row = gguf.quant_shape_to_byte_shape(entry.shape, kind)
  except (ValueError, KeyError, IndexError) as error:
    cursor.fail(f"the tensor {entry.name!r} has an unsupported type or shape ({error})")
  if 0 in row:
    cursor.fail(f"the tensor {entry.name!r} is empty, of shape {entry.shape}")
  begin, size = start + entry.offset, math.prod(row)
  if begin + size > cursor.data.size:
    cursor.fail(
        f"the tensor {entry.name!r} should occupy bytes {begin} to {begin + size}, but the file "
        f"has {cursor.data.size}; it is cut off or damaged")
  raw = cursor.data[begin:begin + size].reshape(row)

  def read() -> np.ndarray:
    try:
      return gguf.dequantize(raw, kind)
    except NotImplementedError as error:
      raise LoadError(
          f"{cursor.path}: the tensor {entry.name!r} is stored as {kind.name}, which cannot be "
          f"decoded here.") from error

  return Tensor(entry.shape, read, cursor.path)


def _open(path: str) -> _Cursor:
  try:
    if os.path.getsize(path) == 0:
      raise LoadError(f"{path}: not a GGUF file: it is empty.")
    # Slices of np.memmap itself are ten times slower than those of a plain array over it.
    return _Cursor(path, np.asarray(np.memmap(path, np.uint8, "r")))
  except OSError as error:
    raise LoadError(f"{path}: cannot be read: {error.strerror or error}.") from error


def read(path: str | os.PathLike) -> File:
  """Reads the header of a GGUF file (version 2 or 3, little-endian) and maps its tensors.

  Raises:
    LoadError: the file is missing, damaged, or of an unsupported version.
  """
  cursor = _open(os.fspath(path))
  if (magic := cursor.take(4, "the magic number").tobytes()) != b"GGUF":
    cursor.fail(f"it starts with {magic!r} instead of b'GGUF'")
  if (version := cursor.number("<I", "the version")) not in (2, 3):
    cursor.fail(f"its version is {version}; versions 2 and 3 in little-endian order are supported")
  num_tensors = cursor.count("<Q", _MAX_ITEMS, "the number of tensors")
  metadata = _read_metadata(cursor, cursor.count("<Q", _MAX_KEYS, "the number of metadata keys"))
  entries = [_read_entry(cursor) for _ in range(num_tensors)]

  alignment = metadata.get("general.alignment", 32)
  if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
    cursor.fail(f"general.alignment is {alignment!r} instead of a small positive integer")
  start = -(-cursor.at // alignment) * alignment
  tensors = {}
  for entry in entries:
    if entry.name in tensors:
      cursor.fail(f"the tensor {entry.name!r} appears twice")
    tensors[entry.name] = _tensor(cursor, entry, start)
  return File(cursor.path, metadata, tensors)
