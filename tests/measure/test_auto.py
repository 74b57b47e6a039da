"""`gamma=auto` becomes the number that the cost model likes best for what a pilot accepts."""

import dataclasses

import pytest

from specjax import theory
from specjax.launch import build, prompts
from specjax.launch.config import DecodeConfig
from specjax.measure import auto, cost_store
from specjax.measure.job import Job
from tests.launch import toys

CHEAP = theory.Costs(0.01, {width: 1.0 for width in range(1, 17)}, 0.001)
DEAR = CHEAP._replace(draft_step=2.0)


@pytest.fixture
def choose(monkeypatch):
  """Resolves a job of the toy setup, with costs that are given."""
  seen = []

  def resolve(costs, texts=("abcabc", "abab"), kept=None, **keys):
    monkeypatch.setattr(
        build, "build", lambda config, load: seen.append(config) or toys.setup(gamma=config.gamma))
    monkeypatch.setattr(
        cost_store, "load_or_measure", lambda *args: cost_store.Found(costs, kept))
    config = DecodeConfig(**{"gamma": "auto", "max_new_tokens": 40} | keys)
    job = Job(config, 0, [prompts.single(text) for text in texts], False, [])
    return job, *auto.resolve(job), seen

  return resolve


def test_cheap_drafts_are_long_and_dear_ones_are_not_made(choose):
  job, resolved, choice, seen = choose(CHEAP)
  assert resolved == job._replace(config=dataclasses.replace(job.config, gamma=choice.gamma))
  assert choice.gamma == theory.best_gamma(CHEAP, choice.alpha, choice.drafting) > 0
  assert choice.predicted[choice.gamma] == max(choice.predicted) > 1
  assert len(choice.predicted) == 8 and choice.tested > 0 and 0 < choice.drafting <= 1
  assert seen[-1].gamma == auto.PILOT_GAMMA
  line = auto.describe(choice)
  assert line.startswith(f"gamma = {choice.gamma} (auto): alpha {choice.alpha:.2f}")
  assert "\n" not in line and f"over {choice.tested} drafted tokens" in line
  assert "costs of" not in line
  _, resolved, choice, _ = choose(DEAR, kept="2001-09-09 01:46+00:00")
  assert resolved.config.gamma == 0 and "(costs of 2001-09-09 01:46" in auto.describe(choice)


def test_a_pilot_without_a_draft_is_no_reason_to_draft(choose):
  _, resolved, choice, _ = choose(CHEAP, texts=("a",), max_new_tokens=2)
  assert choice.tested == choice.alpha == choice.drafting == resolved.config.gamma == 0
  assert "no draft of a pilot" in auto.describe(choice)


def test_a_number_stays():
  job = Job(DecodeConfig(gamma=3), 0, [], False, [])
  assert auto.resolve(job) == (job, None)


def test_a_draft_that_stops_by_itself_has_no_one_length(choose):
  with pytest.raises(ValueError, match="give a number"):
    choose(CHEAP, stop_below=0.5)


def test_nobody_else_takes_it():
  with pytest.raises(ValueError, match="only experiments.decode takes 'auto'"):
    build.build(DecodeConfig(gamma="auto"))
