"""The numbering of prefixes."""

import itertools

import numpy as np
import pytest

from specjax.exact import prefixes


def _number(text, vocab):
  node = 0
  for token in text:
    node = prefixes.child(node, token, vocab)
  return node


@pytest.mark.parametrize("vocab,depth", [(2, 4), (3, 3), (5, 2)])
def test_numbers_are_breadth_first_and_complete(vocab, depth):
  texts = [text for length in range(depth + 1)
           for text in itertools.product(range(vocab), repeat=length)]
  assert [_number(text, vocab) for text in texts] == list(range(prefixes.count(vocab, depth)))


@pytest.mark.parametrize("vocab,length", [(2, 0), (3, 2), (4, 1)])
def test_level_holds_the_texts_of_one_length(vocab, length):
  level = prefixes.level(vocab, length)
  assert list(range(prefixes.count(vocab, 4))[level]) == [
      _number(text, vocab) for text in itertools.product(range(vocab), repeat=length)]


def test_subtrees_are_numbered_like_the_whole_tree():
  starts = [0, _number((2, 1), 3)]
  rows = prefixes.below(3, np.array(starts), 2)
  suffixes = [
      suffix for length in range(3) for suffix in itertools.product(range(3), repeat=length)]
  assert rows.tolist() == [
      [_number(start + suffix, 3) for suffix in suffixes] for start in ((), (2, 1))]


def test_depth_of_a_table():
  assert [prefixes.depth_of(3, rows) for rows in (1, 4, 13)] == [0, 1, 2]
  with pytest.raises(ValueError, match="got 5 rows"):
    prefixes.depth_of(3, 5)
