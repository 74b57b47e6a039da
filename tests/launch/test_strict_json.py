"""Records are JSON that every parser reads."""

import errno
import json
import math
import os
import pathlib
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from specjax.launch import errors, strict_json
from specjax.launch.config import DecodeConfig


class Pair(NamedTuple):
  left: float
  right: tuple


def refuse(constant):
  raise AssertionError(f"{constant} is not JSON")


def round_trip(value):
  text = strict_json.dumps(value)
  assert "\n" not in text and text.isascii()
  return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("value, expected", [
    (math.nan, None),
    (math.inf, None),
    (np.float32("-inf"), None),
    (np.float32(0.5), 0.5),
    (np.int32(3), 3),
    (np.bool_(True), True),
    (True, True),
    (jnp.float32(math.nan), None),
    (jnp.arange(3), [0, 1, 2]),
    (jnp.array([1.5, 2.5], jnp.bfloat16), [1.5, 2.5]),
    (np.array([[1.0, math.nan]]), [[1.0, None]]),
    (Pair(1.0, (np.int64(2), math.nan)), {"left": 1.0, "right": [2, None]}),
    (pathlib.Path("a/b"), "a/b"),
    ({1: "é\n"}, {"1": "é\n"}),
    ([], []),
])
def test_values_become_plain(value, expected):
  assert round_trip(value) == expected


def test_a_configuration_becomes_its_fields():
  assert round_trip(DecodeConfig(gamma=7))["gamma"] == 7


def test_what_has_no_form_is_refused():
  with pytest.raises(TypeError, match="function"):
    strict_json.dumps({"f": lambda: 0})


@pytest.mark.parametrize("text", [
    "{", "NaN", "-Infinity", "[1e999]", "9" * 400, "9" * 5000, "[" * 100_000, b"\xff"])
def test_what_is_not_strict_is_refused(text):
  with pytest.raises(ValueError, match="^not JSON: ") as error:
    strict_json.loads(text)
  assert errors.is_user_error(error.value)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
  path = tmp_path / "x.json"
  strict_json.write(path, {"a": "\udcff"})
  before = path.read_bytes()

  def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")

  monkeypatch.setattr(os, "fsync", full)
  with pytest.raises(OSError, match="No space left") as error:
    strict_json.write(path, {})
  assert error.value.filename == str(path)
  assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == before
