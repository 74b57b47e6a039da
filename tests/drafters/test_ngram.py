"""Prompt lookup against a search over Python lists."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import drafters
from specjax.types import Context, PAD


def lookup(text, gamma, longest, shortest):
  """The longest match, the latest among equals, continued periodically; None without a match."""
  for n in range(longest, shortest - 1, -1):
    for end in range(len(text) - 1, n - 1, -1):
      if text[end - n:end] == text[len(text) - n:]:
        period = len(text) - end
        return [text[end + i % period] for i in range(gamma)]
  return None


def propose(texts, gamma, longest, shortest, capacity=16):
  tokens = np.full((len(texts), capacity), PAD, np.int32)
  for row, text in enumerate(texts):
    tokens[row, :len(text)] = text
  drafter = drafters.ngram(gamma, longest, shortest)
  context = Context(jnp.asarray(tokens), jnp.asarray([len(t) for t in texts]), None, None)
  return drafter.propose(jnp.zeros((len(texts), gamma)), None, (), context).draft


@pytest.mark.parametrize("longest, shortest", [(1, 1), (2, 1), (3, 2), (3, 3), (4, 1)])
def test_every_short_text(longest, shortest):
  """All texts of up to seven tokens over three."""
  texts = [list(t) for n in range(1, 8) for t in itertools.product(range(3), repeat=n)]
  draft = propose(texts, 5, longest, shortest)
  for row, text in enumerate(texts):
    expected = lookup(text, 5, longest, shortest)
    np.testing.assert_array_equal(draft.valid[row], expected is not None)
    if expected is not None:
      np.testing.assert_array_equal(draft.tokens[row], expected, err_msg=str(text))


def test_the_draft_is_a_point_mass_chain():
  draft = propose([[1, 2, 1, 2], [0]], 3, 3, 2)
  assert draft.log_q is None
  np.testing.assert_array_equal(draft.parents, [[-1, 0, 1]] * 2)
  np.testing.assert_array_equal(draft.valid, [[True] * 3, [False] * 3])


def test_a_full_text_is_searched_to_its_end():
  text = list(range(13)) + [5, 6, 7]
  np.testing.assert_array_equal(propose([text], 3, 3, 2).tokens[0], [8, 9, 10])


@pytest.mark.parametrize("arguments", [(0, 3, 2), (-1, 3, 2), (2, 2, 3), (2, 3, 0)])
def test_bad_arguments_are_refused(arguments):
  with pytest.raises(ValueError):
    drafters.ngram(*arguments)


def test_drafters_of_equal_arguments_share_a_compilation():
  """The structure of a record is the part of the jit cache key that it adds."""
  one, same, other = (jax.tree.structure(drafters.ngram(gamma)) for gamma in (3, 3, 4))
  assert one == same and hash(one) == hash(same) and one != other
