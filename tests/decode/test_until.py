"""Ends that the host decides, at every offset of a block."""

import jax
import numpy as np
import pytest

from specjax import decode, logits, verify
from specjax.models import table
from specjax.types import PAD
from tests.decode import toys

KEY = jax.random.key(5)
PROMPTS, LENGTHS = np.array([[1, 2, 3], [2, 1, 0]]), np.array([3, 2])
DECODER = decode.speculative(
    table.target(toys.random_table(0, order=2)), table.drafter(toys.random_table(0, order=2), 4),
    verify.token(), logits.temperature(0.9))


def until(ends, eos=()):
  state = DECODER.init(None, PROMPTS, LENGTHS, max_new_tokens=24, eos=eos)
  state, stats = decode.run_until(DECODER, KEY, None, state, ends)
  lengths = np.asarray(state.lengths) - LENGTHS
  tokens = np.full((2, 24), PAD)
  for row, (begin, length) in enumerate(zip(LENGTHS, lengths)):
    tokens[row, :length] = state.tokens[row, begin:begin + length]
  return decode.Generation(tokens, lengths, stats)


def test_without_an_end_it_is_generate():
  whole = decode.generate(DECODER, KEY, None, PROMPTS, LENGTHS, 24, eos=(3,))
  jax.tree.map(np.testing.assert_array_equal, until(lambda row, tokens: None, eos=(3,)), whole)


def test_rows_that_are_done_stay_as_they_are():
  state = DECODER.init(None, PROMPTS, LENGTHS, max_new_tokens=24)
  idle, stats = decode.run_until(
      DECODER, KEY, None, state._replace(done=np.ones(2, bool)), lambda row, tokens: 0)
  np.testing.assert_array_equal(idle.lengths, LENGTHS)
  assert stats.rounds.sum() == 0


@pytest.mark.parametrize("end", range(0, 24))
def test_an_end_at_every_offset(end):
  """Row 0 ends after `end` tokens, wherever in a block that is; row 1 goes on."""
  whole = decode.generate(DECODER, KEY, None, PROMPTS, LENGTHS, 24)
  got = until(lambda row, tokens: end if row == 0 and len(tokens) >= end else None)
  assert got.lengths.tolist() == [end, 24]
  np.testing.assert_array_equal(got.tokens[0, :end], whole.tokens[0, :end])
  assert (np.asarray(got.tokens[0, end:]) == -1).all()
  np.testing.assert_array_equal(got.tokens[1], whole.tokens[1])
  assert got.stats.emitted[0] == end
  assert got.stats.lengths[0] @ (1 + np.arange(5)) == end
  assert got.stats.accepted[0].sum() <= end


def test_stop_on_a_pair_of_tokens_across_blocks():
  """As a stop string would: the first place where two given tokens follow each other."""
  whole = decode.generate(DECODER, KEY, None, PROMPTS, LENGTHS, 24).tokens[0].tolist()
  for pair in sorted(set(zip(whole, whole[1:]))):
    at = next(i for i in range(23) if (whole[i], whole[i + 1]) == pair) + 2
    ends = lambda row, t: next(
        (i + 2 for i in range(len(t) - 1) if (t[i], t[i + 1]) == pair), None) if row == 0 else None
    assert until(ends).tokens[0, :at].tolist() == whole[:at]
    assert until(ends).lengths[0] == at
