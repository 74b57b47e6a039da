"""Models in GGUF files: the same parameters as the Hugging Face directory they were made from."""

import gguf
import jax
import numpy as np
import pytest

from specjax import loading
from specjax.loading import gguf_file, gguf_model, LoadError
from specjax.models import rope
from specjax.models.config import ModelConfig, RopeScaling
from tests.loading import samples

KINDS = gguf.GGMLQuantizationType


def assert_same_params(ours, theirs, tolerance=0.0):
  assert jax.tree.structure(ours) == jax.tree.structure(theirs)
  for path, leaf in jax.tree_util.tree_leaves_with_path(ours):
    other = theirs
    for key in path:
      other = other[key.key]
    np.testing.assert_allclose(leaf, other, rtol=0, atol=tolerance, err_msg=str(path))


@pytest.mark.parametrize("name, architecture, changes", [
    ("qwen2", "qwen2", {}),
    ("qwen3", "qwen3", {
        "attention.key_length": 16, "attention.value_length": 16, "rope.scaling.type": "yarn",
        "rope.scaling.factor": 8.0, "rope.scaling.original_context_length": 32}),
    ("mistral", "llama", {
        "rope.freq_base": 5000.0, "rope.scaling.type": "linear", "rope.scaling.factor": 2.0}),
])
def test_a_file_loads_as_the_directory_does(tmp_path, name, architecture, changes):
  metadata = samples.model_metadata(architecture, **changes) | samples.tokenizer_metadata()
  arrays = samples.golden_arrays(name, permute=architecture == "llama")
  ours = loading.load(samples.write_gguf(tmp_path / "m.gguf", architecture, metadata, arrays))
  theirs = loading.load(samples.GOLDENS / name)
  np.testing.assert_allclose(rope.frequencies(ours.config), rope.frequencies(theirs.config))
  assert rope.magnitude(ours.config.rope_scaling) == pytest.approx(
      rope.magnitude(theirs.config.rope_scaling))
  same_but_rope = {**vars(theirs.config), "rope_scaling": ours.config.rope_scaling}
  assert vars(ours.config) == same_but_rope
  assert_same_params(ours.params, theirs.params)


def test_biases_of_llama_files_are_permuted_as_their_weights(tmp_path):
  """The golden Llama has every bias; its rope scaling has no place in metadata and is left out."""
  metadata = samples.model_metadata("llama") | samples.tokenizer_metadata()
  arrays = samples.golden_arrays("llama", permute=True)
  ours = loading.load(samples.write_gguf(tmp_path / "m.gguf", "llama", metadata, arrays))
  assert ours.config.qkv_bias and ours.config.out_bias and not ours.config.tied_head
  assert_same_params(ours.params, loading.load(samples.GOLDENS / "llama").params)


@pytest.mark.parametrize("kind, tolerance", [
    (KINDS.F16, 1e-3), (KINDS.BF16, 5e-3), (KINDS.Q8_0, 5e-3), (KINDS.Q4_0, 0.15),
    (KINDS.Q4_1, 0.15)])
def test_quantised_files_are_near_the_original(tmp_path, kind, tolerance):
  """Rows of 32 and 48: the down projections, whose rows are no multiple of 32, stay in float32."""
  metadata = samples.model_metadata("qwen2") | samples.tokenizer_metadata()
  arrays = samples.golden_arrays("qwen2")
  wide = {name: x.reshape(-1) if x.shape[-1] == 48 else x for name, x in arrays.items()}
  path = samples.write_gguf(tmp_path / "m.gguf", "qwen2", metadata, wide, kind)
  tensors = gguf_file.read(path).tensors
  for name, array in arrays.items():
    decoded = tensors[name].read().reshape(array.shape)
    assert np.abs(decoded - array).max() <= tolerance, name


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_have_the_asked_dtype(tmp_path, dtype):
  model = loading.load(samples.write_qwen2(tmp_path / "m.gguf"), dtype)
  assert {str(x.dtype) for x in jax.tree.leaves(model.params)} == {dtype}
  assert model.config.dtype == dtype


def config_of(path) -> ModelConfig:
  file = gguf_file.read(path)
  return gguf_model.config(file, "float32")


def test_defaults_of_absent_keys(tmp_path):
  config = config_of(samples.write_qwen2(
      tmp_path / "m.gguf", **{"rope.freq_base": None, "attention.head_count_kv": None}))
  assert config.rope_theta == 10000.0 and config.num_kv_heads == 4 and config.rope_scaling is None


def test_float32_metadata_is_read_as_the_decimal_that_was_meant(default_model):
  assert default_model.config.norm_eps == 1e-5


@pytest.mark.parametrize("changes, problem", [
    ({"block_count": None}, "qwen2.block_count' is missing"),
    ({"block_count": "2"}, "should be of type int"),
    ({"block_count": 0}, "num_layers must be at least 1"),
    ({"block_count": 1000000}, "only 26 tensors"),
    ({"block_count": 3}, "model.layers.2.input_layernorm.weight is missing"),
    ({"block_count": 1}, "found a tensor model.layers.1"),
    ({"embedding_length": 64}, "should have shape"),
    ({"feed_forward_length": 32}, "should have shape"),
    ({"attention.head_count": 0}, "num_heads must be at least 1"),
    ({"attention.head_count_kv": 3}, "multiple of num_kv_heads"),
    ({"attention.head_count_kv": [2, 2]}, "should be of type int"),
    ({"attention.value_length": 16}, "head size 8"),
    ({"rope.dimension_count": 4}, "head size 8"),
    ({"rope.scaling.type": "longrope"}, "rope scaling 'longrope'"),
    ({"rope.scaling.type": "yarn"}, "rope.scaling.factor' is missing"),
    ({"rope.freq_base": float("inf")}, "rope.freq_base should be a positive number, found inf"),
    ({"attention.layer_norm_rms_epsilon": -1.0}, "should be a positive number, found -1.0"),
    ({"expert_count": 8}, "expert_count is set"),
    ({"attention.sliding_window": 4096}, "sliding_window is set"),
])
def test_metadata_that_cannot_be_served_is_refused(tmp_path, changes, problem):
  path = samples.write_qwen2(tmp_path / "m.gguf", **changes)
  with pytest.raises(LoadError, match=problem) as caught:
    loading.load(path)
  assert "m.gguf" in str(caught.value)


def test_an_unknown_architecture_is_refused(tmp_path):
  path = samples.write_gguf(tmp_path / "m.gguf", "mamba", {}, {"w": np.zeros((2, 4), np.float32)})
  with pytest.raises(LoadError, match="'mamba' is not supported; expected one of llama"):
    loading.load(path)


LLAMA3 = dict(
    vocab_size=64, hidden_size=32, mlp_size=48, num_layers=2, num_heads=4, num_kv_heads=2,
    head_dim=128, max_length=131072, rope_theta=500000.0)


def rope_factors(config: ModelConfig) -> gguf_model.Tensor:
  """The divisors that a converter stores for the config's scaling."""
  plain = ModelConfig(**{**vars(config), "rope_scaling": None})
  divisors = (rope.frequencies(plain) / rope.frequencies(config)).astype(np.float32)
  return gguf_model.Tensor(divisors.shape, lambda: divisors, "f.gguf")


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_the_frequency_divisors_of_llama3_are_recognised(factor):
  scaling = RopeScaling("llama3", factor, 8192, 1.0, 4.0)
  factors = rope_factors(ModelConfig(**LLAMA3, rope_scaling=scaling))
  assert gguf_model._llama3_scaling(ModelConfig(**LLAMA3), factors) == scaling


def test_other_frequency_divisors_are_refused():
  other = ModelConfig(**LLAMA3, rope_scaling=RopeScaling("llama3", 8.0, 4096, 1.0, 4.0))
  with pytest.raises(LoadError, match="not the rule of Llama 3"):
    gguf_model._llama3_scaling(ModelConfig(**LLAMA3), rope_factors(other))
  with pytest.raises(LoadError, match="should hold 64 finite numbers"):
    gguf_model._llama3_scaling(
        ModelConfig(**LLAMA3), gguf_model.Tensor((3,), lambda: np.ones(3), "f.gguf"))
