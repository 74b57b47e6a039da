"""EAGLE-1 and EAGLE-3 against the authors' code, from the published files of random weights."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

from specjax.loading import drafter_eagle
from specjax.models.heads import eagle, record
from specjax.models.layers import rms_norm
from tests.models.heads import goldens

EAGLE3 = ("official", "specforge", "specforge_31", "speculators", "speculators_31",
          "speculators_nbfc")
NAMES = ("eagle1", *(f"eagle3_{x}" for x in EAGLE3))


@functools.cache
def load(name):
  """Head, its complete parameters, and the config."""
  config, target = goldens.target("llama")
  kind = name[:6]
  found, params = getattr(drafter_eagle, kind)(goldens.files(name), config, "float32")
  return getattr(eagle, kind)(found), record.complete(params, target), found


def tolerance(name):
  return goldens.TOLERANCE if name != "eagle1" else dict(rtol=0, atol=5e-4)


def start(*numbers):
  return jnp.asarray(numbers, jnp.int32)


def features(name, tokens="input_ids"):
  """The target's features float[1, T, C, H] for an array of the goldens."""
  return goldens.features("llama", load(name)[0].captures, goldens.expected(name)[tokens])


def read(name, tokens, features):
  """The pass over a prompt: tokens [T], features float[1, T, C, H]."""
  head, params, _ = load(name)
  cache = head.init(1, goldens.CAPACITY)
  return head.forward(
      params, cache, goldens.row(tokens), head.fuse(params, features), start(0))


@functools.cache
def prefill(name):
  return read(name, goldens.expected(name)["draft_input_ids"], features(name))


def chain(name, output, length, steps, using=None):
  """A greedy chain after `length` rows, from the last row of `output`: ids and logits."""
  head, params, _ = using or load(name)
  tokens, logits = [], []
  for step in range(steps):
    logits.append(output.logits[0, -1])
    whole = record.spread(params, logits[-1], head.vocab_size)
    assert whole.shape == (head.vocab_size,)
    tokens.append(int(whole.argmax()))
    output = head.forward(
        params, output.cache, goldens.row(tokens[-1:]), output.hidden[:, -1:],
        start(length + step))
  return np.array(tokens), np.stack(logits)


@pytest.mark.parametrize("name", NAMES)
def test_captures_are_those_of_the_layout(name):
  want = goldens.expected(name)
  head, _, _ = load(name)
  if "feature_hs_indices" in want:
    assert head.captures == tuple(want["feature_hs_indices"])
  np.testing.assert_allclose(
      features(name)[0].reshape(len(want["input_ids"]), -1), want["target_features"],
      **goldens.TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt(name):
  want = goldens.expected(name)
  head, params, config = load(name)
  output = prefill(name)
  np.testing.assert_allclose(output.logits[0], want["prefill_logits"], **tolerance(name))
  hidden = want["prefill_hidden"]
  if getattr(config, "norm_output", False):
    hidden = rms_norm(hidden, params["norm"]["scale"], config.layer.norm_eps, axis=1)
  np.testing.assert_allclose(output.hidden[0], hidden, **tolerance(name))
  if "prefill_fc" in want:
    np.testing.assert_allclose(
        head.fuse(params, features(name))[0], want["prefill_fc"], **goldens.TOLERANCE)


@pytest.mark.parametrize("name", [x for x in NAMES if "prefill_k" in goldens.expected(x)])
def test_keys_and_values(name):
  want = goldens.expected(name)
  for slots, what in zip(prefill(name).cache[0], ("prefill_k", "prefill_v")):
    kept = slots.reshape(want[what].shape[0], goldens.CAPACITY, -1)[:, :want[what].shape[1]]
    np.testing.assert_allclose(kept, want[what], **tolerance(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_chain_of_its_own_features(name):
  want = goldens.expected(name)
  kind = "chain_served" if name == "eagle3_specforge_31" else "chain"
  ids, logits = chain(
      name, prefill(name), len(want["input_ids"]), len(want[f"{kind}_token_ids"]))
  np.testing.assert_array_equal(ids, want[f"{kind}_token_ids"])
  np.testing.assert_allclose(logits, want[f"{kind}_logits"], **tolerance(name))


def drafted_over(name):
  """The cache after the first round: behind the prompt stand rows of a draft."""
  head, params, _ = load(name)
  want, output = goldens.expected(name), prefill(name)
  length = len(want["input_ids"])
  for i, token in enumerate(want["chain_token_ids"]):
    output = head.forward(
        params, output.cache, goldens.row([token]), output.hidden[:, -1:], start(length + i))
  return output.cache


@pytest.mark.parametrize("name", [x for x in NAMES if "round2_all_ids" in goldens.expected(x)])
def test_true_features_take_the_place_of_its_own(name):
  """Two drafted tokens were accepted: their rows are read anew, over what the chain left there."""
  want = goldens.expected(name)
  head, params, _ = load(name)
  length, new = len(want["input_ids"]), len(want["round2_new_features"])
  true = features(name, "round2_all_ids")[:, length:length + new]
  np.testing.assert_allclose(
      true.reshape(new, -1), want["round2_new_features"], **goldens.TOLERANCE)
  output = head.forward(
      params, drafted_over(name), goldens.row(want["round2_all_ids"][length + 1:]),
      head.fuse(params, true), start(length))
  np.testing.assert_allclose(output.hidden[0], want["round2_new_hidden"], **tolerance(name))
  ids, logits = chain(name, output, length + new, len(want["round2_chain_token_ids"]))
  np.testing.assert_array_equal(ids, want["round2_chain_token_ids"])
  np.testing.assert_allclose(logits, want["round2_chain_logits"], **tolerance(name))


def differs(got, wanted):
  """Far beyond what rounding can do: a thousand times the tolerance."""
  assert np.abs(np.asarray(got) - wanted).max() > 0.2


@pytest.mark.parametrize("name", NAMES)
def test_goldens_catch_a_shift_of_features_against_tokens(name):
  want = goldens.expected(name)
  tokens, true = want["draft_input_ids"], features(name)
  for tokens, true, expected in (
      (want["input_ids"], true, want["prefill_logits"]),  # each token with its own feature
      (tokens, np.roll(true, 1, axis=1), want["prefill_logits"]),
      (tokens[1:], true[:, 1:], want["prefill_logits"][1:])):  # the first row dropped
    differs(read(name, tokens, jnp.asarray(true)).logits[0], expected)


@pytest.mark.parametrize("name", NAMES)
def test_goldens_catch_layers_counted_otherwise(name):
  want = goldens.expected(name)
  captures = [i - 1 for i in load(name)[0].captures]  # for EAGLE-1: not after the final norm
  other = goldens.features("llama", captures, want["input_ids"])
  differs(read(name, want["draft_input_ids"], other).logits[0], want["prefill_logits"])


@pytest.mark.parametrize("name", NAMES[1:])
def test_goldens_catch_offsets_taken_for_ids(name):
  head, params, config = load(name)
  want, output = goldens.expected(name), prefill(name)
  offsets = params["target_ids"] - jnp.arange(config.draft_vocab)
  whole = record.spread(params | {"target_ids": offsets}, output.logits[0, -1], head.vocab_size)
  assert whole.argmax() != want["chain_token_ids"][0]


@pytest.mark.parametrize("name", NAMES[1:])
def test_goldens_catch_the_other_output_fed_back(name):
  _, params, config = load(name)
  want = goldens.expected(name)
  other = dataclasses.replace(config, norm_output=not config.norm_output)
  kind = "chain_served" if name == "eagle3_specforge_31" else "chain"
  using = eagle.eagle3(other), params, other
  output = using[0].forward(
      params, using[0].init(1, goldens.CAPACITY), goldens.row(want["draft_input_ids"]),
      using[0].fuse(params, features(name)), start(0))
  _, logits = chain(name, output, len(want["input_ids"]), 2, using)
  differs(logits, want[f"{kind}_logits"][:2])


def test_goldens_catch_own_features_kept():
  """A drafter that keeps the rows of accepted drafts."""
  name = "eagle3_official"
  head, params, _ = load(name)
  want = goldens.expected(name)
  length = len(want["input_ids"])
  true = features(name, "round2_all_ids")[:, length + 2:length + 3]
  output = head.forward(
      params, drafted_over(name), goldens.row(want["round2_all_ids"][length + 3:]),
      head.fuse(params, true), start(length + 2))
  differs(output.hidden[0, -1], want["round2_new_hidden"][-1])
