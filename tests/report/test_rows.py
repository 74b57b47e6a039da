"""Rows of a sweep: what is read, pooled, and refused."""

import copy
import math

import numpy as np
import pytest

from specjax import theory
from specjax.launch import summary
from specjax.launch.dialogue import Answer
from specjax.report import cells, rows
from specjax.stats import estimates
from specjax.stats.counts import Counts
from tests.report import sweeps


def pooled(made):
  readings, failures = rows.read(sweeps.outcomes(made))
  assert not failures
  return cells.pool(readings)


def test_a_cell_of_one_seed_has_the_numbers_of_its_row():
  made = sweeps.row(0, "ngram", "token", 0.6, 4)
  [cell] = pooled([made])
  result = made["result"]
  assert cell.tau.value == result["tau"]
  assert cell.predicted == pytest.approx(result["predicted_speedup"])
  tokens, seconds, plain, spent = (
      np.array([p[name] for p in result["prompts"]])
      for name in ("tokens", "seconds", "baseline_tokens", "baseline_seconds"))

  def speedup(drawn):
    return (spent[drawn].sum() * tokens[drawn].sum()
            / (plain[drawn].sum() * seconds[drawn].sum()))

  assert cell.speedup.value == pytest.approx(speedup(slice(None)))
  assert cell.speedup[1:3] == pytest.approx(estimates.interval(speedup, 16))
  assert cell.baseline_rate == pytest.approx(plain.sum() / spent.sum())
  assert cell.identical is None


def test_what_a_decoding_job_writes_is_read():
  """The record of `summarise` itself, through JSON: every number comes out as it went in."""
  counts = Counts(
      rounds=4, emitted=9, drafting=4, drafted=np.array([4, 3]), tested=np.array([4, 3]),
      accepted=np.array([3, 2]), lengths=np.array([1, 1, 2]))
  answers = [Answer(str(place), "c", 0, [1], [7] * 9, "", [7] * 9, counts, 1.0 + place, 4.0)
             for place in range(6)]
  written = summary.summarise(
      answers, theory.Costs(0.02, {1: 1.0, 3: 1.5}, 0.25),
      summary.Traits(nodes=2, depth=2, exact=True, abstains=True)).to_json()
  setting = sweeps.row(0, "ngram", "token", 0.0, 2)["cell"]
  line = dict(id="a", cell=setting, error=None, result=written, wall_seconds=1, finished="")
  [cell] = pooled([line])
  assert (cell.tau.value, cell.alpha.value) == (written["tau"], written["alpha"])
  assert cell.speedup.value == pytest.approx(written["speedup"])
  assert cell.speedup[1:3] == pytest.approx(written["speedup_interval"])
  assert cell.tau.macro == pytest.approx(written["tau_macro"])
  assert cell.predicted == pytest.approx(written["predicted_speedup"])
  assert cell.rate.value == pytest.approx(written["tokens_per_second"])
  assert cell.baseline_rate == pytest.approx(written["baseline_tokens_per_second"])
  assert cell.identical is True


def test_ratios_by_hand():
  """Two prompts: 3 of 4 and 1 of 2 accepted, 6 tokens in 4 passes and 2 in 1."""
  made = sweeps.row(0, "ngram", "token", 0.0, 2, prompts=2)
  made["result"]["prompts"] = [
      prompt("a", tokens=6, rounds=4, tested=[3, 1], accepted=[2, 1], lengths=[2, 1, 1]),
      prompt("b", tokens=2, rounds=1, tested=[1, 1], accepted=[1, 0], lengths=[0, 1, 0])]
  [cell] = pooled([made])
  assert (cell.tau.value, cell.tau.macro) == (8 / 5, (6 / 4 + 2) / 2)
  assert (cell.alpha.value, cell.alpha.macro) == (4 / 6, (3 / 4 + 1 / 2) / 2)
  assert cell.speedup.value == (8 / 8) / (2 / 8)  # plain decoding takes 4 seconds for 4 tokens each
  assert cell.rate.value == 8 / 2 and cell.baseline_rate == 8 / 8
  assert math.isnan(cell.tau.low) and math.isnan(cell.speedup.high)  # two prompts: no interval


def prompt(name, tokens, rounds, tested, accepted, lengths):
  return dict(name=name, category="c", turn=0, tokens=tokens, seconds=1.0, baseline_tokens=4,
              baseline_seconds=4.0, rounds=rounds, emitted=tokens, drafting=rounds,
              drafted=tested, tested=tested, accepted=accepted, lengths=lengths)


def test_seeds_are_summed_prompt_by_prompt():
  made = [sweeps.row(seed, "ngram", "token", 1.0, 4, seed=seed) for seed in range(3)]
  [cell] = pooled(made)
  results = [row["result"] for row in made]
  assert cell.seeds == 3 and len(cell.parts.tokens) == 16
  assert cell.tau.value == pytest.approx(
      sum(p["emitted"] for r in results for p in r["prompts"]) / sum(r["rounds"] for r in results))
  assert cell.parts.rounds[5] == sum(r["prompts"][5]["rounds"] for r in results)


def test_nothing_else_is_pooled():
  made = sweeps.sweep(gammas=(2, 4), rules=("token", "block"), batch_sizes=(1, 2), prompts=2)
  assert len(pooled(made)) == len(made) == 24


def test_prompts_of_one_name_stay_apart():
  made = sweeps.row(0, "ngram", "token", 0.0, 2, prompts=3)
  for each in made["result"]["prompts"]:
    each["name"] = "same"
  [cell] = pooled([made])
  assert len(cell.parts.tokens) == 3


def test_plain_decoding_and_null_have_no_acceptance():
  made = [sweeps.row(0, "ngram", "token", 0.0, 0), sweeps.row(1, "ngram", "token", 0.0, 4)]
  made[1]["result"]["costs"]["window"] = None
  plain, drafted = pooled(made)
  assert plain.tau.value == 1 and math.isnan(plain.alpha.value) and math.isnan(plain.predicted)
  assert plain.parts.tested.shape == (16, 0) and plain.parts.lengths.shape == (16, 1)
  assert math.isnan(drafted.predicted)


def test_the_last_outcome_of_an_id_counts():
  first = sweeps.row(0, "ngram", "token", 0.0, 4)
  made = sweeps.outcomes([first | dict(error="out of memory", result=None), first])
  readings, failures = rows.read(made)
  assert len(readings) == 1 and not failures
  assert [failure.error for failure in rows.read(made[::-1])[1]] == ["out of memory"]


@pytest.mark.parametrize("damage", [
    lambda row: row["cell"].update(gamma="4"),
    lambda row: row["cell"].update(gamma="auto"),
    lambda row: row["cell"].update(gamma=-1),
    lambda row: row["cell"].update(gamma=10**6),
    lambda row: row["cell"].update(temperature=None),
    lambda row: row["cell"].update(temperature="hot"),
    lambda row: row["cell"].update(batch_size=0),
    lambda row: row["result"].update(prompts=[]),
])
def test_what_is_no_cell_is_a_failure(damage):
  made = sweeps.row(0, "ngram", "token", 0.0, 4, prompts=2)
  good = copy.deepcopy(made) | dict(id="good")
  damage(made)
  readings, [failure] = rows.read(sweeps.outcomes([made, good]))
  assert len(readings) == 1 and failure.name == "cell-0" and "malformed" in failure.error
