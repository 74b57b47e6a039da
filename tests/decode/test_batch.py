"""Lists of token ids, and texts, in and out."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import decode, drafters, keys, loading, logits, verify
from specjax.loading import characters
from specjax.models import table
from specjax.types import Error
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
  with pytest.raises(Error, match="no prompts: give at least one"):
    decode.pad([])


def test_an_empty_prompt_is_refused_as_decoding_refuses_it():
  padded, lengths = decode.pad([[], [1]])
  assert lengths.tolist() == [0, 1]
  with pytest.raises(Error, match="prompt of row 0 is empty"):
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
  with pytest.raises(Error, match="one row at a time"):
    decode.run_batch(decoder(strict=True), KEY, None, PROMPTS, 4)


TABLE = characters.load(2)
PLAIN = decode.autoregressive(TABLE.target(), logits.temperature(0))
TEXTS = ["the light", "a", "what is the name of"]


def test_text_in_text_out():
  """Prompts of different lengths, a drafter without parameters, the same text as plain."""
  fast = decode.speculative(
      TABLE.target(), drafters.ngram(gamma=3), verify.token(), logits.temperature(0))
  ours = decode.answer(fast, TABLE, TEXTS, max_new_tokens=30, chat=False)
  plain = decode.answer(PLAIN, TABLE, TEXTS, max_new_tokens=30, chat=False)
  assert ours.texts == plain.texts and ours.tokens == plain.tokens
  assert [len(tokens) for tokens in ours.tokens] == ours.counts.emitted.tolist()
  assert ours.texts == [TABLE.tokenizer.decode(t, skip_special_tokens=True) for t in ours.tokens]
  assert ours.tau == ours.counts.emitted.sum() / ours.counts.rounds.sum() > 1.3
  assert ours.alpha == ours.counts.accepted.sum() / ours.counts.tested.sum() > 0.5
  assert plain.tau == 1 and math.isnan(plain.alpha)


def test_an_answer_depends_on_the_seed_and_its_place_alone():
  warm = decode.autoregressive(TABLE.target(), logits.temperature(1))
  answer = functools.partial(decode.answer, warm, TABLE, max_new_tokens=30, chat=False)
  three = answer(TEXTS, seed=5).texts
  assert answer(TEXTS[:2], seed=5).texts == three[:2]
  assert answer(TEXTS, seed=6).texts != three


def test_an_answer_is_that_of_the_experiment():
  """One way to encode: the same tokens as a list of them, decoded by hand."""
  ids = [TABLE.tokenizer.encode_raw(text) for text in TEXTS]
  by_hand = decode.run_batch(
      PLAIN, keys.from_seed(0), TABLE.params, ids, 30, eos=TABLE.tokenizer.eos_ids)
  assert decode.answer(PLAIN, TABLE, TEXTS, max_new_tokens=30, chat=False).tokens == by_hand.tokens


def test_a_drafter_with_parameters():
  second = characters.load(1)
  decoder = decode.speculative(
      TABLE.target(), drafters.second_model(second.target(), gamma=3), verify.token(),
      logits.temperature(0))
  answers = decode.answer(
      decoder, TABLE, TEXTS, max_new_tokens=30, chat=False, drafter_params=second.params)
  plain = decode.answer(PLAIN, TABLE, TEXTS, max_new_tokens=30, chat=False)
  assert answers.texts == plain.texts and answers.tau > 1


@pytest.mark.parametrize("prompts, complaint", [
    ([], "no prompts"),
    ("one text", r"a list of texts, got one text: write \['one text'\]"),
    (["a", ""], r"prompts\[1\] is empty"),
    (["a", 3], r"prompts\[1\] is no text but 3"),
    ([[1, 2]], r"prompts\[0\] is no text but \[1, 2\]; `generate` and `run_batch` take token ids"),
])
def test_what_is_no_list_of_texts_is_refused(prompts, complaint):
  with pytest.raises(Error, match=complaint):
    decode.answer(PLAIN, TABLE, prompts, chat=False)


def test_a_prompt_longer_than_the_context_is_refused():
  target = dataclasses.replace(TABLE.target(), max_length=20)
  short = decode.autoregressive(target, logits.temperature(0))
  with pytest.raises(Error, match="row 1 has 21 tokens, but the context of the model holds 20"):
    decode.answer(short, TABLE, ["a", "a" * 21], chat=False)


def test_a_model_without_a_chat_template_says_what_to_do():
  with pytest.raises(loading.LoadError, match="no chat template.*chat=False takes prompts as they"):
    decode.answer(PLAIN, TABLE, TEXTS)


def test_a_model_without_a_tokenizer_is_refused():
  with pytest.raises(loading.LoadError, match="no tokenizer"):
    decode.answer(PLAIN, TABLE._replace(tokenizer=None), TEXTS)
