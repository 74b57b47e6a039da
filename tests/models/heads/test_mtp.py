"""MTP modules against the code that serves or trains them, from files of random weights."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

from specjax.loading import drafter_mtp
from specjax.models.heads import mtp, record
from tests.models.heads import goldens

NAMES = ("mtp_qwen3", "mtp_deepseek_v3", "mtp_qwen3_next")
CHAINS = [("mtp_qwen3", "chain", {}), ("mtp_qwen3_next", "chain", {}),
          ("mtp_deepseek_v3", "chain_postnorm", {}),
          ("mtp_deepseek_v3", "chain_prenorm", dict(feeds_normed=False)),
          ("mtp_deepseek_v3", "chain_vllm", dict(feeds_normed=False, zero_first=True))]


@functools.cache
def load(name):
  """Config and complete parameters; only the dense module's target can be run here."""
  config, target = goldens.target("qwen3")
  if name != "mtp_qwen3":
    config = dataclasses.replace(config, num_layers=2)
  found, params = drafter_mtp.mtp(goldens.files(name), config, "float32")
  return found, record.complete(params, target) if name == "mtp_qwen3" else params


def true_features(name):
  return jnp.asarray(goldens.expected(name)["target_hidden"])[None, :, None]


@functools.cache
def changed(name, **changes):
  config, params = load(name)
  return mtp.mtp(dataclasses.replace(config, **changes)), params


def start(*numbers):
  return jnp.asarray(numbers, jnp.int32)


def read(name, tokens=None, features=None, **changes):
  head, params = changed(name, **changes)
  tokens = goldens.expected(name)["draft_input_ids"] if tokens is None else tokens
  features = true_features(name) if features is None else features
  return head.forward(
      params, head.init(1, goldens.CAPACITY), goldens.row(tokens), head.fuse(params, features),
      start(0))


def chain(name, output, length, steps, **changes):
  head, params = changed(name, **changes)
  tokens, logits = [], []
  for step in range(steps):
    logits.append(output.logits[0, -1])
    tokens.append(int(logits[-1].argmax()))
    output = head.forward(
        params, output.cache, goldens.row(tokens[-1:]), output.hidden[:, -1:],
        start(length + step))
  return np.array(tokens), np.stack(logits)


def test_the_target_of_the_dense_module():
  want = goldens.expected("mtp_qwen3")
  config, _ = load("mtp_qwen3")
  features = goldens.features("qwen3", config.captures, want["input_ids"])
  np.testing.assert_allclose(features[0, :, 0], want["target_hidden"], **goldens.TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt(name):
  want = goldens.expected(name)
  output = read(name)
  np.testing.assert_allclose(output.hidden[0], want["prefill_hidden"], **goldens.TOLERANCE)
  np.testing.assert_allclose(output.logits[0], want["prefill_logits"], **goldens.TOLERANCE)


def test_a_block_before_its_norm_and_without_the_first_embedding():
  name = "mtp_deepseek_v3"
  want = goldens.expected(name)
  output = read(name, feeds_normed=False)
  np.testing.assert_allclose(output.hidden[0], want["prefill_block_output"], **goldens.TOLERANCE)
  output = read(name, zero_first=True)
  np.testing.assert_allclose(
      output.logits[0], want["prefill_logits_zero_first_embedding"], **goldens.TOLERANCE)


@pytest.mark.parametrize("name, kind, changes", CHAINS)
def test_a_chain_of_its_own_features(name, kind, changes):
  want = goldens.expected(name)
  ids, logits = chain(
      name, read(name, **changes), len(want["input_ids"]), len(want[f"{kind}_token_ids"]),
      **changes)
  np.testing.assert_array_equal(ids, want[f"{kind}_token_ids"])
  np.testing.assert_allclose(logits, want[f"{kind}_logits"], **goldens.TOLERANCE)


def differs(got, wanted):
  assert np.abs(np.asarray(got) - wanted).max() > 0.05


@pytest.mark.parametrize("name", NAMES)
def test_goldens_catch_a_shift_of_features_against_tokens(name):
  want = goldens.expected(name)
  differs(read(name, want["input_ids"]).logits[0], want["prefill_logits"])
  shifted = jnp.roll(true_features(name), 1, axis=1)
  differs(read(name, features=shifted).logits[0], want["prefill_logits"])
  dropped = read(name, want["draft_input_ids"][1:], true_features(name)[:, 1:])
  differs(dropped.logits[0], want["prefill_logits"][1:])


@pytest.mark.parametrize("name, kind", [x[:2] for x in CHAINS[:3]])
def test_goldens_catch_the_other_output_fed_back(name, kind):
  want = goldens.expected(name)
  other = dict(feeds_normed=False)
  _, logits = chain(name, read(name, **other), len(want["input_ids"]), 2, **other)
  differs(logits[1], want[f"{kind}_logits"][1])


@pytest.mark.parametrize("name, changes", [
    ("mtp_qwen3_next", dict(zero_centred=False)), ("mtp_qwen3_next", dict(rotary_dim=None)),
    ("mtp_qwen3_next", dict(experts=dict(normalised=False))),
    ("mtp_qwen3_next", dict(experts=dict(gates_shared=False))),
    ("mtp_deepseek_v3", dict(experts=dict(groups=1))),
    ("mtp_deepseek_v3", dict(experts=dict(scale=1.0)))])
def test_goldens_catch_other_layers(name, changes):
  config, _ = load(name)
  if "experts" in changes:
    changes = dict(experts=dataclasses.replace(config.experts, **changes["experts"]))
  differs(read(name, **changes).logits[0], goldens.expected(name)["prefill_logits"])
