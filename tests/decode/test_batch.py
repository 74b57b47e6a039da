"""Lists of token ids in, lists of token ids out."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import decode, logits, verify
from specjax.models import table
from tests.decode import toys

KEY = jax.random.key(3)
PROMPTS = [[1, 2, 3], [2], [0, 1]]
DRAFTER = table.drafter(toys.random_table(1, order=2), 3)


def decoder(strict=False):
  return decode.speculative(
      table.target(toys.random_table(0, order=2)), DRAFTER, verify.token(),
      logits.temperature(0.9), strict)


def test_prompts_are_padded():
  padded, lengths = decode.pad([[1, 2, 3], [4]])
  np.testing.assert_array_equal(padded, [[1, 2, 3], [4, -1, -1]])
  np.testing.assert_array_equal(lengths, [3, 1])
  assert padded.dtype == lengths.dtype == np.int32


def test_no_prompts_are_refused():
  with pytest.raises(ValueError, match="no prompts: give at least one"):
    decode.pad([])


def test_an_empty_prompt_is_refused_as_decoding_refuses_it():
  padded, lengths = decode.pad([[], [1]])
  assert lengths.tolist() == [0, 1]
  with pytest.raises(ValueError, match="prompt of row 0 is empty"):
    decode.run_batch(decoder(), KEY, None, [[], [1]], 4)


def test_a_batch_is_what_generate_gives():
  whole = decode.generate(decoder(), KEY, None, *decode.pad(PROMPTS), 20, eos=(3,))
  batch = decode.run_batch(decoder(), KEY, None, PROMPTS, 20, eos=(3,))
  rows = zip(np.asarray(whole.tokens), np.asarray(whole.lengths))
  assert batch.tokens == [tokens[:length].tolist() for tokens, length in rows]
  jax.tree.map(np.testing.assert_array_equal, batch.counts, whole.stats)
  assert all(isinstance(count, np.ndarray) for count in batch.counts)
  assert batch.seconds > 0
  assert batch.state.done.all()


def test_rows_keep_their_randomness():
  both = decode.run_batch(decoder(), KEY, None, PROMPTS[:2], 12, rows=[4, 7]).tokens
  alone = [
      decode.run_batch(decoder(), KEY, None, [prompt], 12, rows=[row]).tokens[0]
      for prompt, row in zip(PROMPTS, (4, 7))]
  assert both == alone


def test_compiling_changes_nothing_and_plays_no_round():
  """The loop runs twice, first with every row done."""
  calls = []

  def run(decoder, key, params, state):
    calls.append((bool(state.done.all()), int(state.round)))
    return decode.run(decoder, key, params, state)

  batch = decode.run_batch(decoder(), KEY, None, PROMPTS, 8, run=run)
  assert calls == [(True, 0), (False, 0)]
  assert batch.tokens == decode.run_batch(decoder(), KEY, None, PROMPTS, 8).tokens


def test_another_loop_ends_answers_where_it_likes():
  run = functools.partial(decode.run_until, ends=lambda row, tokens: 2 if len(tokens) > 1 else None)
  batch = decode.run_batch(decoder(), KEY, None, PROMPTS, 8, run=run)
  assert [len(tokens) for tokens in batch.tokens] == [2, 2, 2]


def test_laws_that_are_none_stop_it():
  broken = decode.autoregressive(
      table.target(jnp.full((5, 5), jnp.nan)), logits.temperature(0.9))
  with pytest.raises(FloatingPointError, match="Row 0"):
    decode.run_batch(broken, KEY, None, PROMPTS, 4)


def test_strict_mode_takes_one_prompt():
  with pytest.raises(ValueError, match="one row at a time"):
    decode.run_batch(decoder(strict=True), KEY, None, PROMPTS, 4)
