"""Whole models: paths, identity, and pairs that must share a vocabulary."""

import dataclasses
import hashlib
import json

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
import tokenizers

from specjax import loading
from specjax.loading import LoadError
from tests.loading import samples


def test_the_hash_identifies_the_weights(tmp_path):
  path = samples.write_qwen2(tmp_path / "m.gguf")
  model = loading.load(path)
  assert model.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
  assert model.source == str(path)
  shards = sorted((samples.GOLDENS / "llama").glob("*.safetensors"))
  whole = hashlib.sha256(b"".join(shard.read_bytes() for shard in shards)).hexdigest()
  assert loading.load(samples.GOLDENS / "llama").sha256 == whole


def test_a_path_that_is_nothing_is_refused(tmp_path):
  with pytest.raises(LoadError, match="no such file or directory"):
    loading.load(tmp_path / "none")
  with pytest.raises(LoadError, match="config.json"):
    loading.load(tmp_path)
  (tmp_path / "text").write_text("hello world")
  with pytest.raises(LoadError, match="starts with b'hell' instead of b'GGUF'"):
    loading.load(tmp_path / "text")


def test_a_randomly_damaged_file_gives_no_other_exception(tmp_path):
  """A hundred files with changed, lost or new bytes in the header; some of them still load."""
  path = samples.write_qwen2(tmp_path / "m.gguf")
  whole = path.read_bytes()
  rng = np.random.default_rng(0)
  refused = 0
  for _ in range(100):
    start, lost, new = rng.integers(3000), rng.integers(5), rng.integers(5)
    path.write_bytes(whole[:start] + rng.bytes(new) + whole[start + lost:])
    try:
      loading.load(path)
    except LoadError as error:
      refused += 1
      assert len(str(error)) < 1000 and "\n" not in str(error)
  assert refused > 50


def test_an_unknown_dtype_is_refused(tmp_path):
  with pytest.raises(LoadError, match="float32 or bfloat16, got 'int8'"):
    loading.load(samples.GOLDENS / "qwen2", "int8")


def test_a_token_beyond_the_model_is_refused(tmp_path):
  directory = samples.copy_directory("qwen2", tmp_path)
  path = directory / "model.safetensors"
  arrays = safetensors.numpy.load_file(path)
  arrays["model.embed_tokens.weight"] = arrays["model.embed_tokens.weight"][:60].copy()
  safetensors.numpy.save_file(arrays, path)
  config = json.loads((directory / "config.json").read_text()) | {"vocab_size": 60}
  (directory / "config.json").write_text(json.dumps(config))
  with pytest.raises(LoadError, match="knows the id 60, but the model has only 60 tokens"):
    loading.load(directory)


def test_models_of_one_vocabulary_pass():
  target, drafter = (loading.load(samples.GOLDENS / name) for name in ("llama", "qwen3"))
  loading.check_same_vocabulary(target, drafter)


def test_a_token_that_only_one_tokenizer_knows_is_padding(tmp_path):
  """The sample GGUF file has 49 tokens where the golden directory has 61, both of 64 rows."""
  small = loading.load(samples.write_qwen2(tmp_path / "m.gguf"))
  backend = tokenizers.Tokenizer.from_str(small.tokenizer.backend.to_str())
  backend.add_tokens(["<extra>"])
  large = small._replace(tokenizer=dataclasses.replace(small.tokenizer, backend=backend))
  assert large.tokenizer.vocab_size == small.tokenizer.vocab_size + 1
  loading.check_same_vocabulary(small, large)
  loading.check_same_vocabulary(large, small)


def test_a_model_without_a_tokenizer_takes_token_ids(tmp_path):
  directory = samples.copy_directory("llama", tmp_path)
  (directory / "tokenizer.json").unlink()
  bare, whole = loading.load(directory), loading.load(samples.GOLDENS / "llama")
  assert bare.tokenizer is None and bare.target() is whole.target()
  with pytest.raises(LoadError, match=r"no tokenizer\.json .* token ids only; text needs"):
    bare.require_tokenizer()
  assert whole.require_tokenizer() is whole.tokenizer
  loading.check_same_vocabulary(bare, whole)
  loading.check_same_vocabulary(whole, bare)


def test_a_target_gives_the_hidden_states_that_are_asked_for():
  model = loading.load(samples.GOLDENS / "llama")
  target = model.target((0, 2))
  read = target.forward(
      model.params, target.init(model.params, 1, 8), jnp.zeros((1, 3), jnp.int32),
      jnp.zeros(1, jnp.int32), None, None)
  assert read.features.shape == (1, 3, 2, model.config.hidden_size)
  with pytest.raises(ValueError, match="hidden states of the model, 0..2, got .3."):
    model.target((3,))


def test_vocabularies_of_other_sizes_are_refused(default_model):
  drafter = loading.load(samples.GOLDENS / "llama")
  with pytest.raises(LoadError, match="different sizes, 49152 and 64"):
    loading.check_same_vocabulary(default_model, drafter)


def test_other_tokens_are_refused_by_their_first_differences(tmp_path):
  drafter = loading.load(samples.GOLDENS / "qwen2")
  directory = samples.copy_directory("qwen2", tmp_path)
  text = (directory / "tokenizer.json").read_text()
  values = json.loads(text)
  vocab = values["model"]["vocab"]
  vocab["x"], vocab["y"] = vocab["y"], vocab["x"]
  (directory / "tokenizer.json").write_text(json.dumps(values))
  with pytest.raises(LoadError, match="to 2 of 64 ids, first 26 .'x' against 'y'., 27 .'y' aga"):
    loading.check_same_vocabulary(drafter, loading.load(directory))
