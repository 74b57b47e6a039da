"""Medusa's heads against the authors' code."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from specjax.loading import drafter_medusa
from specjax.models.heads import medusa, record
from tests.models.heads import goldens

WANT = goldens.expected("medusa")


@pytest.fixture(scope="module")
def heads():
  config, _ = goldens.target("llama")
  return drafter_medusa.medusa(goldens.files("medusa"), config, "float32")


def test_every_position_from_the_targets_last_state(heads):
  config, params = heads
  features = goldens.features("llama", config.captures, WANT["input_ids"])[0, :, 0]
  np.testing.assert_allclose(features, WANT["last_hidden"], **goldens.TOLERANCE)
  logits = medusa.logits(config, params, features)
  np.testing.assert_allclose(
      jnp.moveaxis(logits, 1, 0), WANT["medusa_logits"], **goldens.TOLERANCE)
  np.testing.assert_array_equal(logits[-1].argmax(-1), WANT["head_top1_ids"])


def test_goldens_catch_a_state_before_the_final_norm_or_of_another_place(heads):
  config, params = heads
  states = goldens.expected("target_llama")
  for other in (states["last_layer_prenorm"], np.roll(WANT["last_hidden"], 1, axis=0)):
    logits = medusa.logits(config, params, jnp.asarray(other))
    assert np.abs(np.moveaxis(logits, 1, 0) - WANT["medusa_logits"]).max() > 0.2


def test_heads_without_a_matrix_use_the_targets(heads):
  config, params = heads
  shared = dataclasses.replace(config, own_output=False)
  blocks = {name: x for name, x in params.items() if "block" in name}
  _, target = goldens.target("llama")
  logits = medusa.logits(
      shared, record.complete(blocks, target), jnp.asarray(WANT["last_hidden"]))
  same = {f"head_{k}": target["head"] for k in range(config.heads)}
  np.testing.assert_array_equal(
      logits, medusa.logits(config, blocks | same, jnp.asarray(WANT["last_hidden"])))
