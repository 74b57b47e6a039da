"""`config.gamma=auto`: the gamma that measured costs and a short pilot promise to be fastest."""

import dataclasses
import functools
from typing import Callable, NamedTuple

import numpy as np

from specjax import decode, keys, loading, theory
from specjax.launch import build, dialogue
from specjax.launch.config import AUTO
from specjax.measure import cost_store
from specjax.measure.job import Job
from specjax.stats import estimates
from specjax.types import Error

PILOT_GAMMA = 4
_PILOT_PROMPTS = 4
_PILOT_TOKENS = 64  # of each answer


class Choice(NamedTuple):
  """Which gamma was chosen, and from what."""

  gamma: int
  alpha: float  # of the pilot; 0 if it had no draft
  tested: int  # drafted tokens that alpha comes from
  drafting: float  # the part of the pilot's rounds that had a draft
  predicted: list[float]  # the speed-up of gamma = 0, 1, ... by the cost model
  costs: theory.Costs
  kept: str | None  # when the costs were measured; None: for this choice


def resolve(
    job: Job, load: Callable[[str, str], loading.Model] = build.load_model
) -> tuple[Job, Choice | None]:
  """The job with a number for its gamma, and the choice; None if it had a number.

  The pilot answers the first few prompts with `PILOT_GAMMA`, 256 tokens at most; costs are those of
  `cost_store`.

  Args:
    job: of any gamma.
    load: (path, dtype) -> a model, as for `build`.

  Raises:
    Error: a configuration that cannot be built, or whose drafts stop early by themselves.
  """
  if job.config.gamma != AUTO:
    return job, None
  if job.config.stop_below:
    raise Error(
        f"config.gamma={AUTO} is for drafts of one length; with config.stop_below, which ends them "
        "early, gamma is the longest: give a number")
  config = dataclasses.replace(job.config, gamma=PILOT_GAMMA)
  setup = build.build(config, load)
  encode = functools.partial(dialogue.encode, setup, answers=[], template=job.template)
  prompts = [encode(each) for each in job.conversations[:max(job.rows, _PILOT_PROMPTS)]]
  choice = _choose(
      *_pilot(setup, keys.from_seed(job.seed), prompts[:_PILOT_PROMPTS], config.max_new_tokens),
      cost_store.load_or_measure(setup, config, prompts[:job.rows]))
  return job._replace(config=dataclasses.replace(job.config, gamma=choice.gamma)), choice


def describe(choice: Choice) -> str:
  """The choice in one line."""
  speeds = " ".join(f"{speed:.2f}" for speed in choice.predicted)
  basis = f"alpha {choice.alpha:.2f} over {choice.tested} drafted tokens" if choice.tested else (
      "no draft")
  if 0 < choice.drafting < 1:
    basis += f", a draft in {choice.drafting:.0%} of the rounds"
  kept = f" (costs of {choice.kept}; experiments.costs --remeasure replaces them)"
  return (
      f"gamma = {choice.gamma} (auto): {basis} of a pilot, c = {choice.costs.draft_step:.3f}; "
      f"predicted speed-up for gamma 0 to {len(choice.predicted) - 1}: {speeds}"
      f"{kept if choice.kept else ''}")


def _pilot(setup, key, prompts, max_new_tokens) -> tuple[float, int, float]:
  """(alpha, tested, drafting) of a few answers, one at a time."""
  totals = np.zeros(4, int)
  for row, prompt in enumerate(prompts):
    counts = decode.run_batch(
        setup.speculative, key, setup.params, [prompt], min(max_new_tokens, _PILOT_TOKENS),
        eos=setup.model.tokenizer.eos_ids, rows=[row]).counts
    totals += [count.sum() for count in (
        counts.accepted, counts.tested, counts.drafting, counts.rounds)]
  accepted, tested, drafting, rounds = totals.tolist()
  return accepted / tested if tested else 0.0, tested, estimates.ratio(drafting, rounds)


def _choose(alpha: float, tested: int, drafting: float, found: cost_store.Found) -> Choice:
  costs = found.costs
  predicted = [
      theory.predict(costs, alpha, gamma, drafting) for gamma in range(theory.MOST_GAMMA + 1)]
  return Choice(
      theory.best_gamma(costs, alpha, drafting), alpha, tested, drafting, predicted,
      costs, found.kept)
