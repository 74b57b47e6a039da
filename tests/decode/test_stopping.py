"""Drafts that end early, through the compiled decoder.

The sampled statistic is that of `test_joint`: Pearson's chi-square over the 64 texts of three
tokens, n = 200 000, false-alarm rate 1e-6, seeds fixed; the mutant must exceed the bar by far.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from specjax import decode, drafters, logits, verify
from specjax.models import table, transformer
from specjax.types import Drafter, Params
from tests.decode import test_joint, toys

KEY = jax.random.key(5)
PROMPTS, LENGTHS = np.array([[1, 2, 3], [2, 1, 0], [3, 0, 0]]), np.array([3, 2, 1])
TARGET = table.target(toys.random_table(0, order=2))
DRAFT = table.target(test_joint.DRAFT)
STOP = 0.35


@functools.cache
def stopping(stop_below=STOP):
  return drafters.second_model(DRAFT, 3, stop_below)


def test_the_joint_law_is_the_targets():
  decoder = test_joint.decoder_of(verify.block(), stopping())
  assert test_joint.chi_square(decoder) < test_joint.BAR


def leaving_out(drafter: Drafter, below: float) -> Drafter:
  """Mutant: a drafted token whose own probability is low is left out, with all that follow it."""
  def propose(keys, params, state, context):
    proposal = drafter.propose(keys, params, state, context)
    draft = proposal.draft
    chosen = jnp.take_along_axis(draft.log_q, draft.tokens[..., None], axis=-1)[..., 0]
    valid = jnp.cumprod(chosen >= np.log(below).astype(np.float32), axis=1, dtype=jnp.int32) > 0
    return proposal._replace(draft=draft._replace(valid=valid))

  return dataclasses.replace(drafter, propose=Partial(propose), abstains=True)


def test_leaving_out_an_unlikely_token_is_caught():
  mutant = leaving_out(drafters.second_model(DRAFT, 3), STOP)
  assert test_joint.chi_square(test_joint.decoder_of(verify.block(), mutant)) > 10 * test_joint.BAR


def texts(decoder, params=None, rows=np.arange(3), tokens=30):
  return decode.generate(
      decoder, KEY, params, PROMPTS[rows], LENGTHS[rows], tokens, rows=rows)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_coupled_texts_are_those_of_plain_decoding(temperature):
  """Bit for bit, for tables and for a transformer with a cache shared with its early exit."""
  transform = logits.temperature(temperature)
  exit_model = transformer.early_exit(toys.TINY, 1)
  params = Params(toys.tiny_params(1), toys.tiny_params(2))
  model = transformer.target(toys.TINY)
  for target, drafter in (
      (TARGET, stopping(0.2)), (model, drafters.layer_skip(exit_model, 4, 0.35))):
    plain = texts(decode.autoregressive(target, transform), params)
    found = texts(decode.speculative(target, drafter, verify.gumbel(), transform), params)
    np.testing.assert_array_equal(found.tokens, plain.tokens)
    drafted = np.asarray(found.stats.drafted).sum(0)
    assert 0 < drafted[-1] < drafted[0] <= np.asarray(found.stats.rounds).sum()


def test_a_row_does_not_see_its_batch():
  decoder = decode.speculative(TARGET, stopping(), verify.token(), logits.temperature(1.0))
  together, alone = texts(decoder), texts(decoder, rows=np.array([1]))
  np.testing.assert_array_equal(together.tokens[1:2], alone.tokens)
  np.testing.assert_array_equal(together.stats.drafted[1:2], alone.stats.drafted)


def test_thresholds_share_a_program():
  transform = logits.temperature(1.0)
  decoder = lambda stop: decode.speculative(TARGET, stopping(stop), verify.token(), transform)
  assert jax.tree.structure(decoder(.2)) == jax.tree.structure(decoder(.3))
  count = lambda stop: int(texts(decoder(stop)).stats.drafted.sum())
  assert count(1e-6) > count(.3) > count(.999) == 0
