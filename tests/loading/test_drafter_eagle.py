"""EAGLE from its published files: every layout, and each way in which a file can be wrong."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from specjax.loading import drafter_eagle, drafter_files, LoadError
from specjax.models.config import ModelConfig
from specjax.models.heads import eagle
from tests.loading import drafter_samples
from tests.loading.drafter_samples import damaged
from tests.models.heads import invented

TARGET = ModelConfig(
    vocab_size=192, hidden_size=64, mlp_size=96, num_layers=8, num_heads=4, num_kv_heads=2,
    head_dim=16, max_length=512, tied_head=False)
NAMES = ("eagle1", "eagle3_official", "eagle3_specforge", "eagle3_specforge_31",
         "eagle3_speculators", "eagle3_speculators_31", "eagle3_speculators_nbfc")


def load(path, target=TARGET):
  read = getattr(drafter_eagle, path.name[:6])
  return read(drafter_files.read(path), target, "float32")


def refused(path, target=TARGET) -> str:
  with pytest.raises(LoadError) as error:
    load(path, target)
  assert "\n" not in str(error.value) and str(path) in str(error.value)
  return str(error.value)


def invent(config) -> drafter_files.Files:
  """A checkpoint in the speculators layout with a tensor for each part of the layout."""
  files = drafter_files.Files("here", {}, {"embed_tokens.weight": None}, [])
  layout = drafter_eagle._layout(files, config, "layers.0.")
  parts = jax.tree.leaves(layout, is_leaf=lambda x: isinstance(x, drafter_files.Part))
  return layout, files._replace(tensors={
      part.name: drafter_files.Tensor(part.shape, lambda p=part: np.zeros(p.shape), "here")
      for part in parts})


@pytest.mark.parametrize("name", NAMES)
def test_the_tree_is_the_one_of_the_network(name):
  config, params = load(drafter_samples.GOLDENS / name)
  wanted = invented.shapes(config)
  # The embedding and the LM head may be left to the target.
  assert wanted | drafter_samples.shapes_of(params) == wanted
  assert set(wanted) - set(params) <= {"embedding", "head"}


@pytest.mark.parametrize("changes", [
    dict(target_size=48), dict(fc_norm=True, norm_output=True), dict(norm_before_fc=True)])
def test_several_layers_and_a_target_of_another_size(changes):
  layer = dataclasses.replace(TARGET, num_layers=3, qk_norm=True)
  config = dataclasses.replace(eagle.Eagle3Config(layer, (1, 4), 64, 80), **changes)
  layout, files = invent(config)
  params = drafter_files.assemble(files, layout, "float32")
  assert drafter_samples.shapes_of(params) == invented.shapes(config)


def test_layers_are_counted_by_where_the_key_stands(tmp_path):
  def captures(name, **change):
    return load(damaged(tmp_path / str(len(list(tmp_path.iterdir()))), name, change))[0].captures

  tmp_path.mkdir(exist_ok=True)
  outputs = {"eagle_aux_hidden_state_layer_ids": [0, 2, 3]}
  assert captures("eagle3_specforge", eagle_config=outputs) == (1, 3, 4)
  assert captures("eagle3_specforge", eagle_config={"layer_ids": [0, 2, 3]}) == (0, 2, 3)
  assert captures("eagle3_specforge", eagle_config=None) == (2, 4, 5)
  assert captures("eagle3_official", eagle_config=outputs) == (2, 4, 5)
  assert captures("eagle3_speculators", eagle_aux_hidden_state_layer_ids=[4, 0, 3]) == (0, 3, 4)
  assert captures("eagle3_speculators", eagle_aux_hidden_state_layer_ids=None) == (2, 4, 5)


def test_rope_is_the_drafters_own(tmp_path):
  assert load(drafter_samples.GOLDENS / "eagle3_official")[0].layer.rope_theta == 1e4
  linear = dict(rope_scaling={"type": "linear", "factor": 2.0}, rope_theta=5e5, head_dim=8)
  layer = load(damaged(tmp_path, "eagle3_official", linear))[0].layer
  assert layer.rope_theta == 1e4 and layer.rope_scaling.factor == 2 and layer.head_dim == 16


@pytest.mark.parametrize("change, problem", [
    (dict(hidden_size=32), "reads hidden states of size 32.*made for another target"),
    (dict(target_hidden_size=128), "size 128, but those of the target have 64"),
    (dict(target_hidden_size="64"), "'target_hidden_size' should be a positive integer"),
    (dict(vocab_size=128), "vocabulary of 128 tokens, but the target has 192"),
    (dict(draft_vocab_size=64), r"lm_head.weight should have shape \(64, 64\)"),
    (dict(eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 3, 8]}), r"\[1, 3, 8\].*0 to 8"),
    (dict(eagle_config={"eagle_aux_hidden_state_layer_ids": [-2, 3, 4]}), "numbered 0 to 8"),
    (dict(eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 1, 4]}), "taken once"),
    (dict(eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 3]}), r"fc.weight.*\(64, 128\)"),
    (dict(eagle_config={"eagle_aux_hidden_state_layer_ids": "1,3"}), "a list of integers"),
    (dict(eagle_config=[1]), "eagle_config.*should be an object"),
    (dict(fc_norm=True), "fc_norm.0.weight is missing"),
    (dict(norm_output="yes"), "'norm_output' should be true or false"),
    (dict(fc_norm=True, norm_before_fc=True), "only one norm"),
    (dict(num_attention_heads=8), "self_attn.*weight should have shape"),
    (dict(rope_scaling={"rope_type": "dynamic", "factor": 2.0}), "'dynamic' is not supported"),
    (dict(rms_norm_eps=None, num_attention_heads=None), "'num_attention_heads' is missing")])
def test_a_wrong_configuration_is_refused(tmp_path, change, problem):
  assert re.search(problem, refused(damaged(tmp_path, "eagle3_specforge", change)))


def ids_of(name):
  return drafter_samples.arrays(name)["d2t"]


@pytest.mark.parametrize("tensors, drop, problem", [
    ({}, ["fc.weight"], "the tensor fc.weight is missing (1 of 14"),
    ({}, ["d2t"], "d2t is missing"),
    ({"fc.bias": np.zeros(64, np.float32)}, [], "found a tensor fc.bias"),
    ({"midlayer.self_attn.q_norm.weight": np.ones(16, np.float32)}, [], "q_norm.weight"),
    ({"norm.weight": np.zeros(32, np.float32)}, [], "norm.weight should have shape (64,)"),
    ({"fc.weight": np.zeros((64, 192), np.int32)}, [], "stored as I32"),
    ({"d2t": np.zeros(80, np.float32)}, [], "stored as F32; expected one of I64"),
    ({"d2t": ids_of("eagle3_specforge") + 192}, [], "outside of the target's 192 tokens"),
    ({"d2t": ids_of("eagle3_specforge") - 192}, [], "outside of the target's 192 tokens"),
    ({"d2t": ids_of("eagle3_specforge") + np.arange(80)}, [], "d2t"),  # ids for offsets
    ({"d2t": -np.arange(80)}, [], "several draft tokens to one"),
    ({"d2t": np.zeros(80, np.int64)}, [], "t2d marks other tokens"),
    ({"d2t": np.zeros(64, np.int64)}, [], "d2t should have shape (80,)"),
    ({"t2d": np.zeros(64, bool)}, [], "t2d should have shape (192,)")])
def test_wrong_tensors_are_refused(tmp_path, tensors, drop, problem):
  assert problem in refused(damaged(tmp_path, "eagle3_specforge", None, tensors, drop))


def test_a_drafter_of_another_size_has_its_own_embedding(tmp_path):
  change = dict(target_hidden_size=48)
  path = damaged(tmp_path, "eagle3_specforge", change, drop=["embed_tokens.weight"])
  target = dataclasses.replace(TARGET, hidden_size=48)
  assert "does not fit a drafter of size 64" in refused(path, target)


@pytest.mark.parametrize("change, drop, problem", [
    (None, ["fc.bias"], "fc.bias is missing"),
    (dict(bias=False), [], "found a tensor fc.bias"),
    (dict(qkv_bias=True), [], "no such biases"),
    (dict(num_hidden_layers=2), [], "layers.1.")])
def test_eagle1_is_checked_too(tmp_path, change, drop, problem):
  assert problem in refused(damaged(tmp_path, "eagle1", change, drop=drop))


def test_pickles_are_refused_by_name(tmp_path):
  path = damaged(tmp_path, "eagle1")
  (path / "model.safetensors").rename(path / "pytorch_model.bin")
  for place in (path, path / "pytorch_model.bin"):
    with pytest.raises(LoadError, match="pytorch_model.bin: .*to_safetensors.py"):
      drafter_files.read(place)
  (path / "pytorch_model.bin").unlink()
  with pytest.raises(LoadError, match="neither model.safetensors"):
    drafter_files.read(path)
  with pytest.raises(LoadError, match="no such directory"):
    drafter_files.read(tmp_path / "nowhere")
