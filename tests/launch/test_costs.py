"""Measured costs are positive, relative to one pass, and leave the cache to its owner."""

from specjax.launch import costs, divergence, play, prompts
from tests.launch import toys


def test_costs_are_ratios():
  setup = toys.setup()
  padded, lengths = play.pad([[0, 1, 2]])
  state = setup.speculative.init(setup.params, padded, lengths)
  found = costs.measure(setup.speculative, setup.params, state)
  assert found.pass_seconds > 0 and found.window > 0 and found.draft_step > 0


def played(setup):
  answer, = play.play(
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
