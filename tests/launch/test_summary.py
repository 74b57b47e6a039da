"""The numbers of a run, against sums done by hand."""

import math

import numpy as np
import pytest

from specjax import theory
from specjax.launch import summary
from specjax.launch.dialogue import Answer
from specjax.stats.counts import Counts


def answer(
    rounds, tested, accepted, tokens, seconds=1.0, baseline_seconds=2.0, same=True, drafted=None):
  drafted = [rounds] * len(tested) if drafted is None else drafted
  drafting = drafted[0] if drafted else 0
  counts = Counts(*map(
      np.asarray, (rounds, len(tokens), drafting, drafted, tested, accepted,
                  [0] * (1 + len(tested)))))
  return Answer(
      "n", "c", 0, [1], list(tokens), "text", list(tokens) if same else [0], counts, seconds,
      baseline_seconds)


TWO = [
    answer(4, [4, 3], [3, 1], range(8), seconds=1.0, baseline_seconds=4.0, drafted=[4, 4]),
    answer(2, [1, 0], [0, 0], range(2), seconds=1.0, baseline_seconds=1.0, drafted=[1, 1]),
]
COSTS = theory.Costs(pass_seconds=0.02, window={1: 1.0, 3: 1.5}, draft_step=0.25)


def summarise(answers, costs, gamma, exact, **traits):
  """The result of chains of gamma tokens."""
  return summary.summarise(answers, costs, summary.Traits(gamma, gamma, exact, **traits))


def test_ratios_are_ratios_of_sums():
  result = summarise(TWO, COSTS, gamma=2, exact=True)
  assert result.tau == 10 / 6 and result.tau_macro == (8 / 4 + 2 / 2) / 2
  assert result.alpha == 4 / 8
  assert result.acceptance_by_position == [3 / 5, 1 / 3]
  assert result.acceptance_by_position_joint == [3 / 6, 1 / 6]
  assert result.rounds == 6
  assert result.tokens_per_second == 10 / 2 and result.baseline_tokens_per_second == 10 / 5
  assert result.speedup == pytest.approx((5 / 10) / (2 / 10))
  assert result.predicted_speedup == pytest.approx((10 / 6) / (1.5 + 2 * 0.25))
  assert result.identical_to_baseline is True and result.speedup_interval is None
  assert result.tokens == [list(range(8)), [0, 1]] and result.text == ["text", "text"]


def test_the_parts_of_every_prompt_are_kept():
  first = summarise(TWO, COSTS, gamma=2, exact=True).to_json()["prompts"][0]
  assert first == dict(
      name="n", category="c", turn=0, tokens=8, seconds=1.0, baseline_tokens=8,
      baseline_seconds=4.0, rounds=4, emitted=8, drafting=4, drafted=[4, 4],
      tested=[4, 3], accepted=[3, 1], lengths=[0] * 3)


def test_rounds_without_a_draft_cost_a_single_row():
  result = summarise(TWO, COSTS, gamma=2, exact=True, abstains=True)
  assert result.drafting_rounds == 5 / 6  # a first token was drafted in 5 of 6 rounds
  mean = 5 / 6 * 1.5 + 1 / 6
  assert result.predicted_speedup == pytest.approx((10 / 6) / (mean + 2 * 0.25))
  assert "83% of the rounds had a draft" in summary.table(result)


def test_a_tree_is_counted_by_rounds_and_costs_its_nodes():
  """Six nodes on two levels: three passes, each of which had a draft with four nodes above."""
  counts = Counts(*map(np.asarray, (3, 6, 3, [12, 6], [7, 2], [2, 1], [1, 1, 1])))
  tree = Answer("n", "c", 0, [1], [0] * 6, "text", [0] * 6, counts, 1.0, 2.0)
  costs = theory.Costs(pass_seconds=0.02, window={1: 1.0, 7: 2.0}, draft_step=0.25)
  result = summary.summarise(
      [tree], costs, summary.Traits(nodes=6, depth=2, exact=True, abstains=True))
  assert result.drafting_rounds == 1 and result.draft_steps == 2 and result.nodes == 6
  assert result.predicted_speedup == pytest.approx(2 / (2.0 + 2 * 0.25))
  assert "tau / (V(7) + 2 c)" in summary.table(result)


def test_drafts_that_end_early_cost_the_steps_that_they_took():
  short = [answer(4, [4, 1], [3, 1], range(8), drafted=[4, 1])]
  result = summarise(short, COSTS, gamma=2, exact=True, abstains=True, stops=True)
  assert result.draft_steps == 2 and result.drafted_tokens == 5 / 4
  longer = [answer(4, [2, 1], [1, 1], range(8), drafted=[2, 1])]
  result = summarise(longer, COSTS, gamma=2, exact=True, abstains=True, stops=True)
  assert result.draft_steps == 1.5  # each round one, and one more after the first token of two
  assert result.predicted_speedup == pytest.approx(2 / (0.5 * 1.5 + 0.5 + 1.5 * 0.25))
  assert "tau / (V(3) + 1.5 c)" in summary.table(result)


def test_a_batch_of_drafts_that_end_early_is_not_predicted():
  result = summarise(TWO, COSTS._replace(rows=2), gamma=2, exact=True, stops=True)
  assert math.isnan(result.predicted_speedup) and math.isnan(result.draft_steps)
  assert "unknown for a batch whose drafts end early" in summary.table(result)


def test_texts_of_unequal_length_compare_by_token():
  longer = answer(1, [0, 0], [0, 0], range(4), seconds=1.0, baseline_seconds=1.0, same=False)
  result = summarise([longer], COSTS, gamma=2, exact=True)
  assert result.speedup == pytest.approx(4.0)  # 1 s a token against 1/4 s a token
  assert result.identical_to_baseline is False


def test_independent_samples_are_not_compared():
  assert summarise(TWO, COSTS, 2, exact=False).identical_to_baseline is None


def test_plain_decoding_has_no_acceptance():
  plain = answer(3, [], [], range(3))
  result = summarise([plain], None, gamma=0, exact=True)
  assert result.tau == 1.0 and math.isnan(result.alpha)
  assert result.acceptance_by_position == [] and math.isnan(result.predicted_speedup)
  assert "alpha" in summary.table(result)


def test_the_interval_is_over_prompts():
  alike = summarise([TWO[0]] * 6, COSTS, 2, exact=True)
  assert alike.speedup_interval == pytest.approx([alike.speedup] * 2)
  mixed = summarise(TWO * 5, COSTS, 2, exact=True)
  low, high = mixed.speedup_interval
  assert low < mixed.speedup < high


def test_the_table_prints_definitions_beside_numbers():
  text = summary.table(summarise(TWO, COSTS, 2, exact=True))
  for part in ("1.67", "tokens emitted / target passes", "0.50", "accepted / tested", "0.60 0.33",
               "2.50", "plain seconds per token / speculative", "0.83", "tau / (V(3) + 2 c)",
               "V = 1.50, c = 0.250", "identical to plain decoding"):
    assert part in text, part
  assert max(len(line) for line in text.splitlines()) < 120
