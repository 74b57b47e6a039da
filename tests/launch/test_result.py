"""Records of results: through JSON and back, those of older versions too, and what is refused."""

import copy
import json
import pathlib

import pytest

from specjax.launch import strict_json
from specjax.launch.result import Divergence, Outcome, Result
from specjax.types import Error
from tests.report import sweeps


OLD = pathlib.Path(__file__).parent / "goldens" / "results_0_1_0.json"  # of `experiments.sweep`


def line():
  return sweeps.row(0, "ngram", "token", 0.0, 4, prompts=2)


def test_a_result_comes_back_from_its_json():
  result = Result(
      tokens=[[1, 2]], text=["a"], nodes=3, tau=2.0, acceptance_by_position=[0.5, float("nan")],
      speedup_interval=(0.5, 1.5), identical_to_baseline=False,
      divergences=[Divergence("x", 0, 1, (2, None), 0.25)])
  read = Result.from_json(strict_json.loads(strict_json.dumps(result.to_json())))
  assert strict_json.plain(read) == strict_json.plain(result)
  assert read.divergences == result.divergences and read.speedup_interval == (0.5, 1.5)


def test_the_keys_of_the_json_are_a_contract():
  keys = {
      "tokens", "text", "prompts", "tau", "tau_macro", "alpha", "acceptance_by_position",
      "acceptance_by_position_joint", "rounds", "tokens_per_second", "baseline_tokens_per_second",
      "speedup", "speedup_interval", "predicted_speedup", "drafting_rounds", "drafted_tokens",
      "draft_steps", "costs", "identical_to_baseline"}
  assert set(Result().to_json()) == keys | {"nodes"}
  assert set(Result(divergences=[]).to_json()) == keys | {"nodes", "divergences"}


def test_an_outcome_comes_back_without_its_texts():
  outcome = Outcome("a", {"gamma": 4}, None, Result(tau=1.0, text=["a"]), 1.5, "now")
  written = json.loads(strict_json.dumps(outcome.to_json()))
  assert "text" not in written["result"]
  assert Outcome.from_json(written) == Outcome(
      "a", {"gamma": 4}, None, Result(tau=1.0), 1.5, "now")
  failed = Outcome("a", {}, "no luck", None, 1.0, "now")
  assert Outcome.from_json(failed.to_json()) == failed


def test_a_line_that_an_older_version_wrote_comes_back_whole():
  old = json.loads(OLD.read_text())
  new = Outcome.from_json(old).to_json()
  assert new["result"].pop("nodes") == 0  # not known
  for prompt in new["result"]["prompts"]:
    assert prompt.pop("drafting") == prompt["drafted"][0]
  assert new == old


def test_lines_of_older_versions_are_read():
  """They have chains alone, and neither counts of rounds with a draft nor the nodes of a draft."""
  old = line()
  for prompt in old["result"]["prompts"]:
    del prompt["drafting"]
  read = Outcome.from_json(old).result
  assert [p.drafting for p in read.prompts] == [p.drafted[0] for p in read.prompts]
  for prompt in old["result"]["prompts"]:
    del prompt["drafted"]
  read = Outcome.from_json(old).result
  assert [p.drafting for p in read.prompts] == [p.tested[0] for p in read.prompts]
  del old["result"]["draft_steps"]
  assert Outcome.from_json(old).result.draft_steps != read.draft_steps


@pytest.mark.parametrize("damage", [
    lambda row: row.update(result=None),
    lambda row: row.update(error="too"),
    lambda row: row.update(result=[1]),
    lambda row: row.update(cell=None),
    lambda row: row.update(id=3),
    lambda row: row.update(wall_seconds=None),
    lambda row: row.pop("finished"),
    lambda row: row["result"].update(tau="<b>"),
    lambda row: row["result"].update(speedup=True),
    lambda row: row["result"].update(speedup_interval=3),
    lambda row: row["result"].update(speedup_interval=[1.0]),
    lambda row: row["result"].update(speedup_interval=[1, "x"]),
    lambda row: row["result"].update(identical_to_baseline="yes"),
    lambda row: row["result"].update(identical_to_baseline=1),
    lambda row: row["result"].update(tokens=[1]),
    lambda row: row["result"].update(prompts=[3]),
    lambda row: row["result"].update(divergences=[dict(name="x")]),
    lambda row: row["result"]["costs"].update(window=-1.0),
    lambda row: row["result"]["prompts"][0].pop("name"),
    lambda row: row["result"]["prompts"][0].update(tokens="many"),
    lambda row: row["result"]["prompts"][0].update(seconds=None),
    lambda row: row["result"]["prompts"][0].update(seconds=float("inf")),
    lambda row: row["result"]["prompts"][0].update(rounds=[1, 2]),
    lambda row: row["result"]["prompts"][0].update(rounds=10**400),
    lambda row: row["result"]["prompts"][0].update(rounds=-1),
    lambda row: row["result"]["prompts"][0].update(tested=[[1]]),
    lambda row: row["result"]["prompts"][0].update(lengths=[1]),
])
def test_what_is_malformed_is_refused(damage):
  bad = copy.deepcopy(line())
  damage(bad)
  with pytest.raises(Error):
    Outcome.from_json(bad)


def test_an_error_says_where():
  bad = line()
  bad["result"]["prompts"][0]["rounds"] = "many"
  with pytest.raises(Error, match="^result: prompts: rounds: 'many' where a count should be$"):
    Outcome.from_json(bad)


@pytest.mark.parametrize("value", [None, 3, [], {}])
def test_what_is_no_record_is_refused(value):
  with pytest.raises(Error):
    Outcome.from_json(value)
