"""config.json: what is served, and that everything else is refused by name."""

import json

import pytest

from specjax import loading
from specjax.loading import hf_model, LoadError
from specjax.models.config import RopeScaling
from tests.loading import samples

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 100,
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 128,
}
QWEN2 = LLAMA | {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "sliding_window": 4096,
    "use_sliding_window": False, "rope_theta": 1e6}
QWEN3 = QWEN2 | {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": False}
MISTRAL = LLAMA | {
    "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": None,
    "num_key_value_heads": 2}


def config(values):
  return hf_model.config("config.json", values, "float32")


def test_defaults_are_those_of_transformers():
  llama = config(LLAMA)
  assert (llama.num_kv_heads, llama.head_dim, llama.rope_theta) == (4, 8, 10000.0)
  assert (llama.norm_eps, llama.tied_head, llama.rope_scaling) == (1e-6, False, None)
  assert not (llama.qkv_bias or llama.out_bias or llama.qk_norm)


def test_families_differ_where_they_should():
  qwen2, qwen3, mistral = config(QWEN2), config(QWEN3), config(MISTRAL)
  assert qwen2.qkv_bias and not qwen2.out_bias and not qwen2.qk_norm and qwen2.head_dim == 8
  assert qwen3.qk_norm and not qwen3.qkv_bias and qwen3.head_dim == 128
  assert mistral.num_kv_heads == 2 and not mistral.qkv_bias
  biased = config(LLAMA | {"attention_bias": True})
  assert biased.qkv_bias and biased.out_bias


@pytest.mark.parametrize("block, expected", [
    (None, None),
    ({"rope_type": "default"}, None),
    ({"type": "linear", "factor": 2}, RopeScaling("linear", 2.0)),
    ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0}, RopeScaling("llama3", 8.0, 64, 1.0, 4.0)),
    ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
     RopeScaling("yarn", 4.0, 32)),
    ({"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5, "beta_fast": 16, "beta_slow": 2,
      "truncate": True}, RopeScaling("yarn", 4.0, 0, beta_fast=16.0, beta_slow=2.0,
                                     attention_factor=1.5)),
])
def test_rope_scaling(block, expected):
  assert config(LLAMA | {"rope_scaling": block}).rope_scaling == expected


def test_recent_files_keep_the_base_among_the_rope_parameters():
  recent = LLAMA | {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 77.0}}
  assert config(recent).rope_theta == 77.0
  assert config(recent).rope_scaling == RopeScaling("linear", 2.0)
  assert config(LLAMA | {"rope_theta": 5e5}).rope_theta == 5e5


@pytest.mark.parametrize("changes, problem", [
    ({"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"]}, "Gemma2.*not supported"),
    ({"architectures": ["LlamaForSequenceClassification"]}, "LlamaForSequenceClassification"),
    ({"model_type": None}, "'model_type' is missing"),
    ({"hidden_size": None}, "'hidden_size' is missing"),
    ({"hidden_size": "32"}, "wrong type, found '32' of type str"),
    ({"hidden_size": True}, "wrong type"),
    ({"hidden_size": -32}, "hidden_size must be at least 1"),
    ({"num_attention_heads": 0}, "num_heads must be at least 1"),
    ({"num_key_value_heads": 3}, "multiple of num_kv_heads"),
    ({"rope_theta": float("nan")}, "'rope_theta' should be a positive number, found nan"),
    ({"rope_theta": 0}, "'rope_theta' should be a positive number, found 0"),
    ({"rms_norm_eps": 10**400}, "'rms_norm_eps' should be a positive number, found 1000"),
    ({"rope_scaling": {"type": "linear", "factor": -2.0}}, "'factor' should be a positive"),
    ({"hidden_act": "gelu"}, "hidden_act = 'silu'"),
    ({"mlp_bias": True}, "mlp_bias = False"),
    ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ({"layer_types": ["full_attention", "sliding_attention"]}, "'sliding_attention'"),
    ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "'dynamic' is not supported"),
    ({"rope_scaling": {"type": "linear"}}, "'factor' is missing"),
    ({"rope_scaling": {"type": "yarn", "factor": 2.0, "mscale": 1.0}}, "'mscale' is not supported"),
    ({"rope_scaling": {"type": "yarn", "factor": 2.0, "truncate": False}}, "truncate = True"),
    ({"rope_scaling": "linear"}, "wrong type"),
])
def test_what_cannot_be_served_is_refused(changes, problem):
  with pytest.raises(LoadError, match=problem) as caught:
    config(LLAMA | changes)
  assert "config.json" in str(caught.value) and "\n" not in str(caught.value)


def test_a_sliding_window_in_use_is_refused():
  for values in (QWEN2 | {"use_sliding_window": True}, MISTRAL | {"sliding_window": 4096},
                 {k: v for k, v in MISTRAL.items() if k != "sliding_window"}):
    with pytest.raises(LoadError, match="sliding window .4096."):
      config(values)


def test_the_goldens_cover_every_family():
  families = {json.loads(path.read_text())["model_type"]
              for path in samples.GOLDENS.glob("*/config.json")}
  assert families == set(hf_model._CLASSES)
  assert loading.load(samples.GOLDENS / "qwen3").config.head_dim == 16
