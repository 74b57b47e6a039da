"""Stop strings end answers wherever they fall, streamed or not, and nothing after them counts."""

import io

import pytest

from specjax.launch import dialogue, prompts, stops, watch
from tests.launch import toys


def answer(stop, temperature=1.0, text="abab", length=40):
  found, = dialogue.answer(
      toys.setup(temperature), [prompts.single(text)], toys.KEY, max_new_tokens=length,
      batch_size=1, template=True, stop=stop)
  return found


def test_every_pair_of_letters_of_a_text_stops_it_there():
  whole = answer([])
  assert len(whole.text) >= 10
  for place in range(len(whole.text) - 1):
    stop = whole.text[place:place + 2]
    got, first = answer([stop]), whole.text.find(stop)
    assert got.text == whole.text[:first]
    assert got.tokens == whole.tokens[:first + 2]
    assert got.counts.emitted == first + 2


def test_the_earliest_of_several_strings_counts():
  whole = answer([]).text
  assert answer([whole[6:9], whole[3:5], "gggggg"]).text == whole[:whole.find(whole[3:5])]


def test_a_string_that_never_comes_changes_nothing():
  assert answer(["gfgfgfgf"]).tokens == answer([]).tokens


def test_an_empty_string_is_refused():
  with pytest.raises(ValueError, match="--stop: a stop string must not be empty"):
    answer([""])


@pytest.mark.parametrize("place", range(0, 8, 2))
def test_the_streamed_text_never_shows_what_follows(place):
  whole = answer([])
  stop = [whole.text[place:place + 3]]
  out = io.StringIO()
  watch.watch(toys.setup(1.0), toys.KEY, whole.prompt, 40, out, stop)
  assert out.getvalue() == answer(stop).text + "\n"


@pytest.mark.parametrize("text, strings, length", [
    ("abc", ["cd"], 1), ("abc", ["abcd"], 3), ("abc", ["bd", "bcx"], 2), ("abc", ["x"], 0),
    ("", ["ab"], 0), ("aab", ["aac"], 0), ("aa", ["aab"], 2), ("abc", [], 0)])
def test_beginnings(text, strings, length):
  assert stops.partial_length(text, strings) == length
