"""A job measured whole: its numbers, its record, and what is refused before it starts."""

import pytest

from specjax.launch import prompts, strict_json
from specjax.launch.config import DecodeConfig
from specjax.launch.result import Result
from specjax.measure import job as jobs
from specjax.types import Error
from tests.launch import toys


def make(texts=("abcabcabc", "gfedcba"), stop=(), **keys):
  config = DecodeConfig(**dict(gamma=3, max_new_tokens=12) | keys)
  return jobs.Job(config, 0, [prompts.single(text) for text in texts], False, list(stop))


def test_a_job_is_measured_with_the_nodes_and_steps_of_its_drafter():
  answered = []
  result = jobs.measure(toys.setup(gamma=3), make(), answered.append)
  assert sum(answered) == 2 == len(result.prompts) == len(result.tokens)
  assert result.nodes == 3 and result.draft_steps == 3 and result.costs.rows == 1
  drafting, rounds = (sum(getattr(p, name) for p in result.prompts) for name in (
      "drafting", "rounds"))
  assert 0 < drafting < rounds == result.rounds  # prompt lookup does not always find something
  assert result.drafting_rounds == drafting / rounds
  assert result.identical_to_baseline and result.divergences == []


def test_a_batch_is_scored_whole_where_one_row_drafts():
  result = jobs.measure(toys.setup(gamma=3), make(batch_size=2))
  assert result.drafting_rounds == 1 and result.costs.rows == 2


def test_plain_decoding_has_no_costs():
  result = jobs.measure(toys.setup(gamma=0), make(gamma=0))
  assert result.nodes == 0 and result.costs is None and result.tau == 1


def test_independent_samples_have_no_divergences():
  result = jobs.measure(toys.setup(temperature=1.0), make(temperature=1.0))
  assert result.identical_to_baseline is result.divergences is None


def test_the_record_holds_the_result_and_what_a_replay_needs():
  setup, job = toys.setup(gamma=3), make(stop=["zz"])
  result = jobs.measure(setup, job)
  written = strict_json.loads(strict_json.dumps(jobs.to_json(setup, job, result)))
  assert Result.from_json(written).to_json() == result.to_json()
  assert written["manifest"]["config"]["gamma"] == 3 and written["inputs"]["stop"] == ["zz"]


def test_what_cannot_be_decoded_is_refused_at_once():
  with pytest.raises(Error, match="no tokens"):
    jobs.check(toys.setup(), make(texts=("a", "???")))
  with pytest.raises(Error, match="--stop"):
    jobs.check(toys.setup(), make(stop=[""]))
