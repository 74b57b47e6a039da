"""Directories of JSON and safetensors: nothing outside them is read, damage is one clear error."""

import json
import os

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from specjax import loading
from specjax.loading import hf_directory, LoadError
from tests.loading import samples

INDEX = "model.safetensors.index.json"


def refused(path, problem):
  with pytest.raises(LoadError, match=problem) as caught:
    loading.load(path)
  assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def change_json(path, **changes):
  values = json.loads(path.read_text()) | changes
  path.write_text(json.dumps({k: v for k, v in values.items() if v is not None}))


def change_tensors(path, change):
  safetensors.numpy.save_file(change(safetensors.numpy.load_file(path)), path)


@pytest.mark.parametrize("content, problem", [
    (b"", "not valid JSON"), (b"{", "not valid JSON"), (b"\xff\xfe\x00", "not valid JSON"),
    (b"[1]", "should hold a JSON object, found a list"),
    (b"[" * 100000, "not valid JSON"), (b'{"a":' * 100000, "not valid JSON"),
    (b'{"a": ' + b"1" * 5000 + b"}", "not valid JSON"),
])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json",
                                  "generation_config.json", INDEX])
def test_bad_json_is_refused(tmp_path, name, content, problem):
  directory = samples.copy_directory("llama", tmp_path)
  (directory / name).write_bytes(content)
  refused(directory, problem)


def test_json_without_end_is_not_read(tmp_path):
  path = tmp_path / "big.json"
  with open(path, "wb") as file:
    file.truncate(1 << 27)  # a sparse file
  with pytest.raises(LoadError, match="too large"):
    hf_directory.read_json(path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path, name):
  directory = samples.copy_directory("qwen2", tmp_path)
  (directory / name).unlink()
  refused(directory, name)


def test_a_missing_shard_is_named(tmp_path):
  directory = samples.copy_directory("llama", tmp_path)
  (directory / "model-00002-of-00002.safetensors").unlink()
  refused(directory, "model-00002-of-00002.safetensors: not a usable safetensors file")


@pytest.mark.parametrize("name", [
    "../qwen2/model.safetensors", "/etc/passwd", "sub/model.safetensors", "..", "", "weights.bin",
    "model.safetensors\0", "..\\x.safetensors/../../y.safetensors"])
def test_an_index_that_points_elsewhere_is_refused(tmp_path, name):
  directory = samples.copy_directory("llama", tmp_path)
  samples.copy_directory("qwen2", tmp_path)
  index = json.loads((directory / INDEX).read_text())
  index["weight_map"]["lm_head.weight"] = name
  (directory / INDEX).write_text(json.dumps(index))
  refused(directory, "of the same directory|not a usable safetensors file")


@pytest.mark.parametrize("weight_map", [None, [], {"a": 1}, {"a": {}}, "x"])
def test_an_index_of_another_form_is_refused(tmp_path, weight_map):
  directory = samples.copy_directory("llama", tmp_path)
  change_json(directory / INDEX, weight_map=weight_map)
  refused(directory, "weight_map should")


def test_a_linked_shard_is_followed(tmp_path):
  """Download caches keep a directory of links; only the index must not choose the path."""
  directory = samples.copy_directory("qwen2", tmp_path)
  os.rename(directory / "model.safetensors", tmp_path / "blob")
  os.symlink(tmp_path / "blob", directory / "model.safetensors")
  loading.load(directory)


def test_a_shard_cut_off_or_flipped_is_refused(tmp_path):
  directory = samples.copy_directory("qwen2", tmp_path)
  path = directory / "model.safetensors"
  raw = path.read_bytes()
  for size in (0, 4, 8, 100, 1000, len(raw) // 2, len(raw) - 1):
    path.write_bytes(raw[:size])
    refused(directory, "not a usable safetensors file")
  for byte in range(8):  # the length of the header
    path.write_bytes(raw[:byte] + bytes([raw[byte] ^ 0x40]) + raw[byte + 1:])
    refused(directory, "not a usable safetensors file")


def test_wrong_tensors_are_refused(tmp_path):
  directory = samples.copy_directory("qwen2", tmp_path)
  path = directory / "model.safetensors"
  change_tensors(path, lambda x: x | {"model.norm.weight": x["model.norm.weight"][:7]})
  refused(directory, r"model.safetensors: the tensor model.norm.weight .* \(32,\).* found \(7,\)")
  change_tensors(path, lambda x: {k: v for k, v in x.items() if k != "model.norm.weight"})
  refused(directory, "the tensor model.norm.weight is missing")


def test_a_tensor_in_two_shards_is_refused(tmp_path):
  directory = samples.copy_directory("llama", tmp_path)
  other = hf_directory.tensors([directory / "model-00001-of-00002.safetensors"])
  name = next(iter(other))
  change_tensors(
      directory / "model-00002-of-00002.safetensors", lambda x: x | {name: other[name].read()})
  refused(directory, f"the tensor {name} is also in")


def test_integers_are_refused(tmp_path):
  directory = samples.copy_directory("qwen2", tmp_path)
  change_tensors(
      directory / "model.safetensors", lambda x: {k: v.astype(np.int8) for k, v in x.items()})
  refused(directory, "stored as I8; expected one of F32, F16, BF16")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_every_float_is_read(tmp_path, dtype):
  values = np.array([[0.5, -1.25], [3.0, 65504.0]]).astype(dtype)
  safetensors.numpy.save_file({"w": values}, tmp_path / "m.safetensors")
  tensor = hf_directory.tensors([tmp_path / "m.safetensors"])["w"]
  assert tensor.shape == (2, 2)
  np.testing.assert_array_equal(tensor.read(), values)


def test_pickled_weights_are_not_looked_at(tmp_path):
  directory = samples.copy_directory("qwen2", tmp_path)
  os.rename(directory / "model.safetensors", directory / "pytorch_model.bin")
  refused(directory, "neither model.safetensors nor")
