"""Medusa, DFlash and DSpark from their published files, and how a file can be wrong."""

import dataclasses

import numpy as np
import pytest

from specjax.loading import drafter_dflash, drafter_files, drafter_medusa, LoadError
from specjax.models.config import ModelConfig
from tests.loading import drafter_samples
from tests.loading.drafter_samples import damaged
from tests.models.heads import invented

TARGET = ModelConfig(
    vocab_size=192, hidden_size=64, mlp_size=96, num_layers=7, num_heads=4, num_kv_heads=2,
    head_dim=24, max_length=512, tied_head=False)


def load(path, target=TARGET):
  kind = path.name.split("_")[0]
  read = drafter_medusa.medusa if kind == "medusa" else getattr(drafter_dflash, kind)
  return read(drafter_files.read(path), target, "float32")


def refused(path, target=TARGET) -> str:
  with pytest.raises(LoadError) as error:
    load(path, target)
  assert "\n" not in str(error.value) and str(path) in str(error.value)
  return str(error.value)


@pytest.mark.parametrize("name", ["medusa", "dflash", "dflash_speculators", "dspark"])
def test_the_tree_is_the_one_of_the_network(name):
  config, params = load(drafter_samples.GOLDENS / name)
  wanted = invented.shapes(config)
  # The embedding and the LM head may be left to the target.
  assert wanted | drafter_samples.shapes_of(params) == wanted
  assert set(wanted) - set(params) <= {"embedding", "head"}


def test_dflash_as_it_is_configured():
  config = load(drafter_samples.GOLDENS / "dflash")[0]
  assert (config.captures, config.block_size, config.drafts) == ((2, 4, 6), 8, 7)
  assert config.windows == (None,) * 3 and config.causal == (False,) * 3
  config = load(drafter_samples.GOLDENS / "dflash_speculators")[0]
  assert (config.captures, config.draft_vocab, config.drafts) == ((2, 5), 72, 5)
  assert config.windows == (6, None) and config.causal == (True, False)
  config = load(drafter_samples.GOLDENS / "dspark")[0]
  assert (config.captures, config.drafts, config.markov_rank) == ((2, 6), 5, 16)


def test_dflash_keys_may_stand_elsewhere(tmp_path):
  block = {"mask_token_id": 7, "block_size": 4, "causal": True}
  config = load(damaged(tmp_path, "dflash", dict(dflash_config=block, block_size=None)))[0]
  assert (config.mask_token, config.block_size, config.causal) == (7, 4, (True,) * 3)
  assert config.captures == (2, 3, 5)  # by default 1 + i 3/2, halves to the even side, plus one


@pytest.mark.parametrize("layers, drafter, ids", [
    (36, 5, [1, 9, 17, 25, 33]), (30, 5, [1, 8, 14, 20, 27]), (30, 3, [1, 14, 27]),
    (30, 2, [1, 27]), (30, 1, [15])])
def test_default_layers_are_spread_evenly(layers, drafter, ids):
  assert drafter_dflash._spread_evenly(layers, drafter) == ids


@pytest.mark.parametrize("name, change, problem", [
    ("dflash", dict(hidden_size=32), "made for another target"),
    ("dflash", dict(vocab_size=64), "made for another target"),
    ("dflash", dict(num_hidden_layers=10**9), "1000000000 layers, but there are only 36 tensors"),
    ("dflash", dict(num_target_layers=9), "a target of 9 layers, but the target has 7"),
    ("dflash", dict(block_size="8"), "'block_size' should be a positive integer"),
    ("dflash", dict(block_size=1), "drafts nothing"),
    ("dflash", dict(dflash_config={"mask_token_id": 192}), "one of the 192 tokens, found 192"),
    ("dflash", dict(dflash_config=None), "mask_token_id"),
    ("dflash", dict(dflash_config=3), "should be an object"),
    ("dflash", dict(dflash_config={"mask_token_id": 1, "target_layer_ids": [1, 3, 7]}), "0 to 7"),
    ("dflash", dict(layer_types=["sliding_attention"] * 3), "'sliding_attention'"),
    ("dflash_speculators", dict(aux_hidden_state_layer_ids=None), "list of integers, found None"),
    ("dflash_speculators", dict(sample_from_anchor=True), "sample_from_anchor is not supported"),
    ("dflash_speculators", dict(transformer_layer_config=None), "missing"),
    ("dflash_speculators", dict(draft_vocab_size=None), "lm_head.weight should have shape"),
    ("dspark", dict(markov_head_type="rnn"), "only markov_head_type 'vanilla'"),
    ("dspark", dict(markov_rank=None), "'markov_rank' should be a positive integer"),
    ("dspark", dict(confidence_head_with_markov=False), "confidence_head.proj.weight"),
    ("dspark", dict(enable_confidence_head=False), "found a tensor confidence_head")])
def test_a_wrong_configuration_is_refused(tmp_path, name, change, problem):
  assert problem in refused(damaged(tmp_path, name, change))


@pytest.mark.parametrize("kinds, window, problem", [
    (["sliding_attention"], 6, "name 2 layers"), (["sliding_attention", 3], 6, "name 2 layers"),
    (["sliding_attention"] * 2, None, "sliding_window should be a positive number"),
    (["sliding_attention"] * 2, -1, "sliding_window should be a positive number")])
def test_wrong_windows_are_refused(tmp_path, kinds, window, problem):
  block = drafter_files.read(drafter_samples.GOLDENS / "dflash_speculators").config[
      "transformer_layer_config"] | dict(layer_types=kinds, sliding_window=window)
  change = dict(transformer_layer_config=block)
  assert problem in refused(damaged(tmp_path, "dflash_speculators", change))


def test_a_drafter_of_another_size_has_its_own_tables(tmp_path):
  path = damaged(tmp_path, "dflash", dict(target_hidden_size=32))
  target = dataclasses.replace(TARGET, hidden_size=32)
  assert "embed_tokens.weight is missing" in refused(path, target)


@pytest.mark.parametrize("tensors, drop, problem", [
    ({}, ["2.0.linear.bias"], "2.0.linear.bias is missing"),
    ({}, ["3.1.weight"], "3.1.weight is missing"),
    ({}, [f"{k}.0.linear.weight" for k in range(4)], "no Medusa head"),
    ({"9.0.linear.weight": np.zeros((64, 64), np.float32)}, [], "4.1.weight is missing"),
    ({"99999999.0.linear.weight": np.zeros((64, 64), np.float32)}, [], "only 13 tensors"),
    ({"0.0.linear.weight": np.zeros((32, 32), np.float32)}, [], "made for another target"),
    ({"1.1.weight": np.zeros((100, 64), np.float32)}, [], "1.1.weight should have shape"),
    ({"embed.weight": np.zeros((2, 2), np.float32)}, [], "found a tensor embed.weight")])
def test_medusa_is_checked(tmp_path, tensors, drop, problem):
  assert problem in refused(damaged(tmp_path, "medusa", None, tensors, drop))


def test_medusa_counts_heads_in_the_file_and_may_share_the_targets(tmp_path):
  assert load(drafter_samples.GOLDENS / "medusa")[0].heads == 4  # the configuration says 2
  path = damaged(tmp_path, "medusa", drop=[f"{k}.1.weight" for k in range(4)])
  config, params = load(path)
  assert not config.own_output and "head_0" not in params
