"""DFlash and DSpark against their authors' code, from the published files of random weights."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

from specjax.loading import drafter_dflash
from specjax.models import cache as cache_lib
from specjax.models.heads import dflash, record
from tests.models.heads import goldens

NAMES = ("dflash", "dflash_speculators", "dspark")


@functools.cache
def load(name):
  config, target = goldens.target("qwen3")
  found, params = getattr(drafter_dflash, name.split("_")[0])(
      goldens.files(name), config, "float32")
  return found, record.complete(params, target)


def features(name, tokens="input_ids"):
  return goldens.features("qwen3", load(name)[0].captures, goldens.expected(name)[tokens])


def start(*numbers):
  return jnp.asarray(numbers, jnp.int32)


def read(name, true=None, using=None):
  config, params = using or load(name)
  cache = cache_lib.empty(config.layer, 1, goldens.CAPACITY)
  return dflash.apply(
      config, "read", params, cache, features(name) if true is None else true, start(0))


def block(name, cache=None, anchor="bonus_id", length=None, using=None):
  config, params = using or load(name)
  want = goldens.expected(name)
  token = want[anchor].reshape(-1)[-1:].astype(np.int32)
  length = len(want["input_ids"]) if length is None else length
  cache = read(name) if cache is None else cache
  return dflash.apply(config, "draft", params, cache, jnp.asarray(token), start(length))


def logits_of(name):
  return goldens.expected(name)["base_logits" if name == "dspark" else "block_logits"]


@pytest.mark.parametrize("name", NAMES)
def test_the_context(name):
  want = goldens.expected(name)
  config, params = load(name)
  true = features(name)
  np.testing.assert_allclose(
      true.reshape(len(want["input_ids"]), -1), want["target_features"], **goldens.TOLERANCE)
  if "context" in want:
    context = dflash.apply(config, "fuse", params, true)
    np.testing.assert_allclose(context.T, want["context"], **goldens.TOLERANCE)
  if "context_k" in want:
    for layer, k, v in zip(read(name), want["context_k"], want["context_v"]):
      for slots, kept in zip(layer, (k, v)):
        heads, length, dim = kept.shape
        slots = slots.reshape(heads, goldens.CAPACITY, dim)[:, :length]
        np.testing.assert_allclose(slots, kept, **goldens.TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_a_block(name):
  want = goldens.expected(name)
  config, params = load(name)
  output = block(name)
  first = config.block_size - config.drafts  # DFlash does not draft with the anchor's row
  assert first == (name != "dspark")
  np.testing.assert_allclose(
      output.hidden[0], want["block_hidden"][first:], **goldens.TOLERANCE)
  np.testing.assert_allclose(output.logits[0], logits_of(name)[first:], **goldens.TOLERANCE)
  if name != "dspark":
    whole = record.spread(params, output.logits[0], config.layer.vocab_size)
    ids = "draft_token_ids" if "draft_token_ids" in want else "draft_ids"
    np.testing.assert_array_equal(whole.argmax(-1), want[ids])


def test_the_next_block_stands_on_new_features():
  """Two drafts were accepted; the rows of the first block are overwritten."""
  name = "dflash"
  want = goldens.expected(name)
  config, params = load(name)
  length, new = len(want["input_ids"]), len(want["round2_new_features"])
  true = features(name, "round2_all_ids")[:, length:length + new]
  np.testing.assert_allclose(
      true.reshape(new, -1), want["round2_new_features"], **goldens.TOLERANCE)
  cache = dflash.apply(config, "read", params, block(name).cache, true, start(length))
  output = block(name, cache, "round2_all_ids", length + new)
  np.testing.assert_allclose(
      output.hidden[0], want["round2_block_hidden"][1:], **goldens.TOLERANCE)
  np.testing.assert_allclose(
      output.logits[0], want["round2_block_logits"][1:], **goldens.TOLERANCE)
  np.testing.assert_array_equal(output.logits[0].argmax(-1), want["round2_draft_ids"])


def test_dspark_corrects_from_left_to_right():
  want = goldens.expected("dspark")
  config, params = load("dspark")
  output = block("dspark")
  previous = start(int(want["bonus_id"]))
  for j, wanted in enumerate(want["draft_ids"]):
    logits = dflash.apply(config, "correct", params, output.logits[:, j], previous)
    np.testing.assert_allclose(logits[0], want["corrected_logits"][j], **goldens.TOLERANCE)
    trust = dflash.apply(config, "trust", params, output.hidden[:, j], previous)
    np.testing.assert_allclose(trust[0], want["confidence_logits"][j], **goldens.TOLERANCE)
    previous = logits.argmax(-1).astype(jnp.int32)
    assert previous[0] == wanted


def differs(output, name):
  want = logits_of(name)[-output.logits.shape[1]:]
  assert np.abs(output.logits[0] - want).max() > 0.2


@pytest.mark.parametrize("name", NAMES)
def test_goldens_catch_what_stands_elsewhere(name):
  length = len(goldens.expected(name)["input_ids"])
  differs(block(name, length=length - 1), name)  # the anchor over its own feature
  differs(block(name, read(name, jnp.roll(features(name), 1, axis=1))), name)
  # DFlash's drafts are those of the rows after the anchor, DSpark's of the anchor's row too.
  config, params = load(name)
  other = dataclasses.replace(config, from_anchor=not config.from_anchor)
  shifted = block(name, using=(other, params)).logits[0]
  drafts = min(len(shifted), config.drafts)
  want = logits_of(name)[config.block_size - config.drafts:]
  assert np.abs(shifted[:drafts] - want[:drafts]).max() > 0.2


@pytest.mark.parametrize("name", NAMES)
def test_goldens_catch_layers_counted_otherwise(name):
  config, _ = load(name)
  inputs = tuple(i - 1 for i in config.captures)
  other = goldens.features("qwen3", inputs, goldens.expected(name)["input_ids"])
  differs(block(name, read(name, other)), name)


@pytest.mark.parametrize("changes", [
    dict(windows=(None, None)), dict(windows=(5, None)), dict(windows=(7, None)),
    dict(causal=(False, False)), dict(causal=(True, True))])
def test_goldens_catch_other_masks(changes):
  config, params = load("dflash_speculators")
  other = dataclasses.replace(config, **changes), params
  output = block("dflash_speculators", using=other)
  assert np.abs(output.logits[0] - logits_of("dflash_speculators")[1:]).max() > 2e-3
