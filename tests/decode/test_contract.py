"""What a decoder hands to a drafter: prompts in chunks with features, then every round."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from specjax import decode, drafters, logits, verify
from specjax.decode.prefill import CHUNK
from specjax.models import transformer
from specjax.trees import accepted
from specjax.types import Error, Params
from tests.decode import toys

CAPTURES = (0, 2)
TARGET = transformer.target(toys.TINY, CAPTURES)
COLD = logits.temperature(0.0)


def remembering(drafter):
  """The drafter, with a state that keeps all that it was told to read, by position."""
  def init(params, batch, capacity):
    width = toys.TINY.hidden_size
    return (jnp.full((batch, capacity + 1, 2), -7, jnp.int32),
            jnp.zeros((batch, capacity + 1, len(CAPTURES), width)))

  def read(params, state, tokens, features, start, count):
    pairs, hidden = state
    width = tokens.shape[1] - 1
    place = jnp.arange(width)[None]
    slots = jnp.where(place < count[:, None], start[:, None] + place, pairs.shape[1])
    rows = jnp.arange(len(start))[:, None]
    both = jnp.stack([tokens[:, :-1], tokens[:, 1:]], -1)
    return (pairs.at[rows, slots].set(both, mode="drop"),
            hidden.at[rows, slots].set(features, mode="drop"))

  def propose(keys, params, state, context):
    return drafter.propose(keys, params, (), context)._replace(state=state)

  def observe(params, state, verdict, features, context):
    return read(params, state, *accepted.read_of(verdict, features, context))

  return dataclasses.replace(
      drafter, init=Partial(init), read=Partial(read), propose=Partial(propose),
      observe=Partial(observe), captures=CAPTURES)


def test_everything_that_the_target_reads_is_read_once_with_its_features():
  """Prompts of one token, of several chunks, rounds that accept nothing, something and all."""
  lengths = np.array([1, CHUNK + 6, 2 * CHUNK + 1])
  prompts = np.random.default_rng(0).integers(0, 5, (3, lengths.max()))
  drafter = remembering(drafters.ngram(3, shortest=1))
  decoder = decode.speculative(TARGET, drafter, verify.token(), COLD)
  params = Params(toys.tiny_params(0))
  state = decoder.init(params, prompts, lengths, max_new_tokens=20)
  state, stats = decode.run(decoder, jax.random.key(0), params, state)
  assert stats.accepted.sum() > 0 and (stats.accepted.sum(1) < stats.tested.sum(1)).any()

  pairs, hidden = map(np.asarray, state.drafter)
  tokens, ends = np.asarray(state.tokens), np.asarray(state.lengths)
  cache = TARGET.init(params.target, 3, tokens.shape[1])
  truth = TARGET.forward(
      params.target, cache, jnp.maximum(state.tokens, 0), jnp.zeros(3, jnp.int32)).features
  for row, end in enumerate(ends):
    text = tokens[row, :end]
    np.testing.assert_array_equal(pairs[row, :end - 1], np.stack([text[:-1], text[1:]], -1))
    assert (pairs[row, end - 1:] == -7).all()
    np.testing.assert_allclose(hidden[row, :end - 1], truth[row, :end - 1], rtol=0, atol=1e-4)


def test_the_target_must_capture_what_the_drafter_reads():
  drafter = remembering(drafters.ngram(3))
  with pytest.raises(Error, match=r"hidden states \(0, 2\), but the target captures none"):
    decode.speculative(transformer.target(toys.TINY), drafter, verify.token(), COLD)
  with pytest.raises(Error, match=r"captures \(0, 1\).*captures=\(0, 2\)"):
    decode.speculative(transformer.target(toys.TINY, (0, 1)), drafter, verify.token(), COLD)


def test_siblings_that_are_none_of_the_known_kinds_are_refused():
  odd = dataclasses.replace(drafters.ngram(3), siblings="somehow")
  with pytest.raises(Error, match="siblings.*'somehow'"):
    decode.speculative(TARGET, odd, verify.token(), COLD)


def test_the_first_draft_is_that_of_the_first_round():
  params = Params(toys.tiny_params(0), toys.tiny_params(1))
  drafter = drafters.second_model(transformer.target(toys.TINY), 3)
  decoder = decode.speculative(
      transformer.target(toys.TINY), drafter, verify.token(), logits.temperature(1.0))
  state = decoder.init(params, [[1, 2, 3]], [3])
  key = jax.random.key(3)
  proposal = decoder.propose(key, params, state)
  _, verdict = decoder.step(key, params, state)
  kept = int(verdict.count[0]) - 1
  np.testing.assert_array_equal(proposal.draft.tokens[0, :kept], verdict.tokens[0, :kept])
  assert proposal.draft.log_q.shape == (1, 3, toys.TINY.vocab_size)
