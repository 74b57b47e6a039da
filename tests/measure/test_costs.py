"""Measured costs are positive, relative to one pass of all rows, and forget no step of a draft."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import decode, drafters, logits, verify
from specjax.launch import dialogue, divergence, prompts
from specjax.measure import costs
from specjax.models import table
from specjax.trees import chains
from specjax.types import Draft, Params
from tests.launch import toys


@pytest.mark.parametrize("rows", [1, 3])
def test_costs_are_ratios(rows):
  setup = toys.setup()
  found = costs.measure(setup.speculative, setup.params, [[0, 1, 2]] * rows, 16, (4, 8))
  assert found.pass_seconds > 0 and found.draft_step > 0 and found.rows == rows
  assert set(found.window) == {1, 4, 8} and found.window[1] == 1 and found.window[8] > 0
  assert found.overhead == found.plain_overhead == 0
  full = costs.with_overheads(
      found, setup.plain, setup.speculative, setup.params, [[0, 1, 2]] * rows)
  assert full.overhead > 0 and full.plain_overhead > 0 and full.window == found.window


def second_model(stop_below=None, strict=False):
  scores = jnp.log(jnp.asarray([0.6, 0.4]))
  target = table.target(scores)
  drafter = drafters.second_model(target, 3, stop_below)
  return decode.speculative(target, drafter, verify.token(), logits.temperature(1.0), strict)


def test_strict_passes_have_one_width():
  found = costs.measure(second_model(strict=True), Params(None), [[0, 1]], 16, (4,))
  assert found.window == {width: 1.0 for width in range(1, 9)}


@pytest.mark.parametrize("stop_below, steps", [(None, 3), (0.5, 2), (0.9, 1)])
def test_the_steps_of_a_draft_are_counted(stop_below, steps):
  """A draft of up to 3: with 0.5 a first token at least 0.4 likely, then a law that stops it."""
  decoder = second_model(stop_below)
  state = decoder.init(None, *decode.pad([[0, 1]]), max_new_tokens=16)
  proposal = decoder.propose(jax.random.key(0), Params(None), state)
  assert int(costs._steps(proposal.draft, 3)) == steps


def test_a_copied_draft_counts_its_tokens():
  draft = chains.chain(jnp.zeros((2, 4), jnp.int32), None, jnp.zeros((2, 4), bool))
  assert int(costs._steps(draft, 4)) == 4


@pytest.mark.parametrize("valid, steps", [
    ([True] * 6, 3), ([True, True, True, True, False, False], 3), ([True, True] + [False] * 4, 2),
    ([False] * 6, 1)])
def test_the_steps_of_a_tree_are_its_levels(valid, steps):
  """Two nodes on each of three levels, the second row without any."""
  tokens, parents = jnp.zeros((2, 6), jnp.int32), jnp.asarray([[-1, -1, 0, 0, 2, 2]] * 2)
  drawn = Draft(tokens, parents, jnp.zeros((2, 6, 3)), jnp.asarray([valid, [False] * 6]))
  assert int(costs._steps(drawn, 3)) == steps
  assert int(costs._steps(drawn._replace(log_q=None), 3)) == 3


def played(setup):
  answer, = dialogue.answer(
      setup, [prompts.single("abab")], toys.KEY, max_new_tokens=12, batch_size=1, template=True)
  return answer


def test_equal_texts_do_not_diverge():
  setup = toys.setup()
  assert divergence.first(setup, played(setup)) is None


def test_the_margin_is_the_targets_at_the_first_difference():
  setup = toys.setup()
  answer = played(setup)
  other = list(answer.tokens)
  other[3] = (other[3] + 1) % 8
  found = divergence.first(setup, answer._replace(baseline_tokens=other))
  assert (found.position, found.tokens) == (3, (answer.tokens[3], other[3]))
  text = answer.prompt + answer.tokens[:3]
  row = sorted(setup.plain.target.forward.args[0][text[-2], text[-1]].tolist())
  assert abs(found.margin - (row[-1] - row[-2])) < 1e-6


def test_a_text_that_ends_early_diverges_at_its_end():
  setup = toys.setup()
  answer = played(setup)
  found = divergence.first(setup, answer._replace(baseline_tokens=answer.tokens[:5]))
  assert found.position == 5 and found.tokens == (answer.tokens[5], None)


def test_a_transform_that_counts_tokens_is_measured_like_any_other():
  """A draft is proposed as `generate` has it proposed, with the counts of the text."""
  penalised = logits.chain(logits.repetition_penalty(1.2), logits.temperature(0.7))
  target = table.target(np.eye(5, dtype=np.float32))
  decoder = decode.speculative(
      target, drafters.second_model(target, 2), verify.token(), penalised)
  measured = costs.measure(decoder, Params(None), [[0, 1]], 16, (1, 3))
  assert measured.draft_step > 0 and set(measured.window) == {1, 3}
