"""Conversations are played turn by turn, and an answer does not depend on its company."""

import numpy as np
import pytest

from specjax import decode
from specjax.launch import dialogue
from specjax.launch.prompts import Conversation
from tests.launch import toys

TALKS = [
    Conversation("x", "", ("abab", "cd"), "talks, line 1"),
    Conversation("y", "", ("gfedcba",), "talks, line 2"),
    Conversation("z", "", ("c", "d", "e"), "talks, line 3"),
    Conversation("w", "", ("abcabcabc",), "talks, line 4"),
]


def answers(batch_size=1, temperature=0.0, conversations=TALKS, **options):
  return dialogue.answer(
      toys.setup(temperature), conversations, toys.KEY, max_new_tokens=12, batch_size=batch_size,
      template=options.pop("template", True), **options)


def by_turn(some):
  return {(a.name, a.turn): a for a in some}


def test_every_turn_is_answered_with_what_was_said_before():
  found = by_turn(answers())
  assert set(found) == {(c.name, t) for c in TALKS for t in range(len(c.turns))}
  tokenizer = toys.Tokenizer()

  def said(name, turn):
    return found[name, turn].text

  assert tokenizer.decode(found["z", 2].prompt) == f"acb{said('z', 0)}adb{said('z', 1)}ae"
  assert tokenizer.decode(found["y", 0].prompt) == "agfedcba"


def test_answers_come_in_the_order_of_the_prompts():
  order = [(c.name, turn) for c in TALKS for turn in range(len(c.turns))]
  assert [(a.name, a.turn) for a in answers(1)] == order
  assert [(a.name, a.turn) for a in answers(3)] == order


def test_without_the_template_the_texts_follow_one_another():
  found = by_turn(answers(template=False))
  assert toys.Tokenizer().decode(found["x", 1].prompt) == f"abab{found['x', 0].text}cd"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_does_not_depend_on_the_batch(temperature):
  alone, together = by_turn(answers(1, temperature)), by_turn(answers(3, temperature))
  for turn, answer in alone.items():
    assert answer.tokens == together[turn].tokens
    assert answer.baseline_tokens == together[turn].baseline_tokens


def test_turns_are_drawn_independently():
  twice = [Conversation("x", "", ("ab",), ""), Conversation("y", "", ("ab",), "")]
  first, second = answers(2, temperature=1.0, conversations=twice)
  assert first.prompt == second.prompt and first.tokens != second.tokens


def test_both_ways_agree_at_temperature_zero():
  for answer in answers(2):
    assert answer.tokens == answer.baseline_tokens
    assert answer.counts.emitted == len(answer.tokens) <= 12
    assert answer.counts.rounds <= len(answer.tokens)
    assert answer.seconds > 0 and answer.baseline_seconds > 0


def test_the_text_is_without_the_end_token():
  found = answers(1, temperature=1.0, repeats=3)
  ended = [a for a in found if a.tokens[-1] == toys.EOS]
  assert ended, "the seed should end some text"
  for answer in ended:
    assert answer.text == toys.Tokenizer().decode(answer.tokens[:-1])


def test_progress_counts_turns():
  seen = []
  answers(3, progress=seen.append)
  assert seen == [3, 2, 1, 1]


def test_both_decoders_go_first_in_turn(monkeypatch):
  order, real = [], decode.run

  def run(decoder, key, params, state):
    if not np.asarray(state.done).all():  # else it only compiles
      order.append(decoder.drafter.nodes)
    return real(decoder, key, params, state)

  monkeypatch.setattr(decode, "run", run)
  answers(conversations=[TALKS[1], TALKS[3]], repeats=2)
  assert order == [3, 0, 0, 3, 0, 3, 3, 0]


@pytest.mark.parametrize("turns, complaint", [
    (("a" * 20,), "turn 1 makes a prompt of 21 tokens"),
    (("a", "a" * 20), "turn 2 makes a prompt of"),
])
def test_a_prompt_beyond_the_context_names_its_line(turns, complaint):
  long = Conversation("x", "", turns, "set.jsonl, line 9")
  with pytest.raises(ValueError, match=f"set.jsonl, line 9: {complaint}.*holds 20"):
    dialogue.answer(
        toys.setup(max_length=20), [long], toys.KEY, max_new_tokens=4, batch_size=1, template=True)


def test_a_prompt_without_tokens_is_refused():
  with pytest.raises(ValueError, match="here: the prompt has no tokens"):
    dialogue.encode(toys.setup(), Conversation("x", "", ("???",), "here"), [], template=False)
