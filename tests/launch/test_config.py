"""Configurations are checked when they are made, and say which key is wrong."""

import dataclasses
import importlib.util
import math
import pathlib

import pytest

from specjax.launch import config as config_lib
from specjax.launch.config import AXES, DecodeConfig, FIELDS, from_mapping, Limits

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.parametrize("key, value", [
    ("gamma", 1025),
    ("gamma", -1), ("gamma", True), ("gamma", "4"), ("gamma", 1.5), ("gamma", "Auto"),
    ("gamma", 10**6), ("max_new_tokens", 2**31 - 1), ("batch_size", 10**20), ("top_k", 2**31),
    ("temperature", 10**400),
    ("stop_below", -0.1), ("stop_below", 1.1), ("stop_below", math.nan), ("stop_below", "x"),
    ("temperature", -0.1), ("temperature", math.nan), ("temperature", math.inf),
    ("top_k", -1), ("top_p", 0.0), ("top_p", 1.5), ("top_p", math.nan),
    ("min_p", -0.1), ("min_p", 1.1), ("max_new_tokens", 0), ("batch_size", 0),
    ("dtype", "float64"), ("drafter", ""), ("rule", ""), ("strict", 1), ("target", None),
])
def test_a_bad_value_is_named(key, value):
  with pytest.raises(ValueError) as error:
    from_mapping({key: value})
  assert f"config.{key}" in str(error.value) and repr(value) in str(error.value)


@pytest.mark.parametrize("key, value", [
    ("gamma", 0), ("gamma", "auto"), ("stop_below", 0.0), ("stop_below", 1.0),
    ("temperature", 0.0), ("top_k", 0), ("top_p", 1.0), ("min_p", 1.0),
    ("max_new_tokens", 1), ("batch_size", 1),
])
def test_the_edge_of_a_range_is_inside(key, value):
  assert getattr(from_mapping({key: value}), key) == value


def test_whole_numbers_are_numbers():
  made = from_mapping({"temperature": 1, "top_p": 1})
  assert (type(made.temperature), made.temperature, made.top_p) == (float, 1.0, 1.0)


def test_an_unknown_key_is_named_with_its_nearest():
  with pytest.raises(ValueError, match="some.py: unknown key 'gama'; did you mean 'gamma'?"):
    from_mapping({"gama": 3}, "some.py")


def test_a_key_like_no_other_gets_the_list():
  with pytest.raises(ValueError, match="batch_size, drafter, dtype, gamma"):
    from_mapping({"zzz": 3})


def test_the_schema_can_be_read():
  assert list(FIELDS) == [field.name for field in dataclasses.fields(DecodeConfig)]
  assert AXES == (*FIELDS, "seed", "prompts")
  gamma, top_p = FIELDS["gamma"], FIELDS["top_p"]
  assert (gamma.kind, gamma.limits, gamma.words) == (int, Limits(0, 1024), ("auto",))
  assert top_p.limits == Limits(0, 1, above=True)
  assert gamma.allowed == "from 0 to 1024 (an integer), or 'auto'"
  assert top_p.allowed == "above 0 and at most 1"
  assert FIELDS["dtype"].allowed == "'float32' or 'bfloat16'"
  assert FIELDS["strict"].allowed == "true or false" and FIELDS["target"].allowed == "a text"
  for field in FIELDS.values():
    field.check(field.default)


@pytest.mark.parametrize("key, text, value", [
    ("gamma", "5", 5), ("gamma", "auto", "auto"), ("gamma", "1.5", "1.5"), ("top_p", "1", 1.0),
    ("temperature", "1e-3", 1e-3), ("strict", "True", True), ("strict", "yes", "yes"),
    ("drafter", "4", "4")])
def test_a_text_means_what_its_key_takes(key, text, value):
  parsed = FIELDS[key].parse(text)
  assert (type(parsed), parsed) == (type(value), value)


def test_a_configuration_is_frozen():
  with pytest.raises(dataclasses.FrozenInstanceError):
    DecodeConfig().gamma = 2


def loaded(path):
  spec = importlib.util.spec_from_file_location("config_under_test", path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module.get_config()


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_the_files_of_configs_are_valid(path):
  from_mapping(loaded(path), str(path))


def test_the_default_file_is_whole():
  """--config.KEY can only change what is in the file."""
  keys = {field.name for field in dataclasses.fields(DecodeConfig)}
  assert set(loaded(config_lib.DEFAULT_FILE)) == keys


def test_the_default_file_exists():
  assert config_lib.DEFAULT_FILE == CONFIGS / "smollm2.py"
  assert config_lib.DEFAULT_FILE.is_file()
