"""MTP modules from their published files, and each way in which a file can be wrong."""

import numpy as np
import pytest

from specjax.loading import drafter_files, drafter_mtp, LoadError
from specjax.models.config import ModelConfig
from tests.loading import drafter_samples
from tests.loading.drafter_samples import damaged
from tests.models.heads import invented

LAYERS = {"mtp_qwen3": 7, "mtp_deepseek_v3": 2, "mtp_qwen3_next": 2}


def target(name, **changes) -> ModelConfig:
  return ModelConfig(**(dict(
      vocab_size=192, hidden_size=64, mlp_size=96, num_layers=LAYERS[name], num_heads=4,
      num_kv_heads=2, head_dim=24, max_length=512) | changes))


def load(path, **changes):
  return drafter_mtp.mtp(drafter_files.read(path), target(path.name, **changes), "float32")


def refused(path, **changes) -> str:
  with pytest.raises(LoadError) as error:
    load(path, **changes)
  assert "\n" not in str(error.value) and str(path) in str(error.value)
  return str(error.value)


@pytest.mark.parametrize("name", LAYERS)
def test_the_tree_is_the_one_of_the_network(name):
  config, params = load(drafter_samples.GOLDENS / name)
  wanted = invented.shapes(config)
  assert wanted | drafter_samples.shapes_of(params) == wanted
  missing = {"embedding", "head"} if name == "mtp_qwen3" else set()  # left to the target
  assert set(wanted) - set(params) == missing


@pytest.mark.parametrize("name, change, problem", [
    ("mtp_qwen3", dict(speculators_model_type=None), "model type None are not supported"),
    ("mtp_qwen3", dict(transformer_layer_config=None), "'model_type' is missing"),
    ("mtp_qwen3", dict(num_nextn_predict_layers=2), "only one MTP module"),
    ("mtp_deepseek_v3", dict(num_nextn_predict_layers=2), "only one MTP module"),
    ("mtp_deepseek_v3", dict(scoring_func="softmax"), "only scoring_func 'sigmoid'"),
    ("mtp_deepseek_v3", dict(kv_lora_rank=None), "'kv_lora_rank' should be a positive integer"),
    ("mtp_deepseek_v3", dict(v_head_dim=32), "v_head_dim 32 is larger"),
    ("mtp_deepseek_v3", dict(q_lora_rank=None), "q_proj.weight is missing"),
    ("mtp_deepseek_v3", dict(n_routed_experts=10**9), "1000000000 experts, but there are only"),
    ("mtp_deepseek_v3", dict(n_group=3), "groups is impossible"),
    ("mtp_deepseek_v3", dict(n_group=4), "groups is impossible"),
    ("mtp_deepseek_v3", dict(num_experts_per_tok=5), "5 of 4 experts"),
    ("mtp_deepseek_v3", dict(routed_scaling_factor="2"), "routed_scaling_factor"),
    ("mtp_deepseek_v3", dict(vocab_size=100), "made for another target"),
    ("mtp_deepseek_v3", dict(rope_scaling={"type": "yarn", "factor": 2.0, "mscale": 1.0}),
     "'mscale' is not supported"),
    ("mtp_qwen3_next", dict(num_experts=3), "experts.3.down_proj.weight"),
    ("mtp_qwen3_next", dict(hidden_size=32), "made for another target"),
    ("mtp_qwen3_next", dict(partial_rotary_factor=0.2), "an even number of each head's 16"),
    ("mtp_qwen3_next", dict(partial_rotary_factor="all"), "found 'all'")])
def test_a_wrong_configuration_is_refused(tmp_path, name, change, problem):
  assert problem in refused(damaged(tmp_path, name, change))


@pytest.mark.parametrize("name, tensors, drop, problem", [
    ("mtp_qwen3", {}, ["mtp_layers.0.input_proj.weight"], "input_proj.weight is missing"),
    ("mtp_qwen3", {"mtp_layers.1.x.weight": np.zeros(2, np.float32)}, [], "found a tensor"),
    ("mtp_qwen3_next", {}, ["mtp.fc.weight"], "mtp.fc.weight is missing"),
    ("mtp_qwen3_next", {"mtp.extra.weight": np.zeros(2, np.float32)}, [], "found a tensor"),
    ("mtp_deepseek_v3", {"model.layers.2.x.weight": np.zeros(2, np.float32)}, [], "found a"),
    ("mtp_deepseek_v3", {"model.layers.2.enorm.weight": np.zeros(2, np.float32)}, [], "(64,)")])
def test_wrong_tensors_are_refused(tmp_path, name, tensors, drop, problem):
  assert problem in refused(damaged(tmp_path, name, None, tensors, drop))


def test_the_module_stands_behind_the_targets_layers():
  path = drafter_samples.GOLDENS / "mtp_deepseek_v3"
  assert "model.layers.3." in refused(path, num_layers=3)
