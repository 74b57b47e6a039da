"""One decoding job: what decides about its tokens, and decoding it with everything measured."""

import dataclasses
from typing import Any, Callable, NamedTuple

from specjax import keys, theory
from specjax.launch import config as config_lib, dialogue, divergence, record, stops, summary
from specjax.launch.build import Setup
from specjax.launch.prompts import Conversation
from specjax.launch.result import Result
from specjax.measure import costs


class Job(NamedTuple):
  """All that decides about the tokens of a decoding run, besides the machine."""

  config: config_lib.DecodeConfig
  seed: int
  conversations: list[Conversation]
  template: bool
  stop: list[str]

  @property
  def turns(self) -> int:
    """How many prompts are answered, over all conversations."""
    return sum(len(conversation.turns) for conversation in self.conversations)

  @property
  def repeats(self) -> int:
    """Runs of each batch, of which the median counts: several where there is one prompt alone."""
    return 3 if self.turns == 1 else 1

  @property
  def rows(self) -> int:
    """Prompts that are decoded together; in strict mode one by one."""
    return 1 if self.config.strict else min(self.config.batch_size, len(self.conversations))

  def inputs(self) -> dict:
    """The part of a job that its manifest does not hold, as plain JSON."""
    return dict(
        conversations=[c._asdict() for c in self.conversations],
        apply_chat_template=self.template, stop=self.stop)


def check(setup: Setup, job: Job) -> None:
  """Raises Error if a first prompt or a stop string does not fit, before an hour is spent."""
  stops.ends(setup.model.tokenizer, job.stop)
  for conversation in job.conversations:
    dialogue.encode(setup, conversation, [], job.template)


def measure(
    setup: Setup, job: Job, progress: Callable[[int], None] = lambda turns: None) -> Result:
  """Decodes a job speculatively and plainly, in turn, and takes its numbers.

  Args:
    setup: what `build` made of `job.config`.
    job: what to decode.
    progress: called with the number of turns that have just been answered.
  """
  answers = dialogue.answer(
      setup, job.conversations, keys.from_seed(job.seed),
      max_new_tokens=job.config.max_new_tokens, batch_size=job.config.batch_size,
      template=job.template, stop=job.stop, repeats=job.repeats, progress=progress)
  traits = _traits(setup, job)
  result = summary.summarise(answers, _costs(setup, job, answers), traits)
  if not traits.exact:
    return result
  found = [divergence.first(setup, answer) for answer in answers]
  return dataclasses.replace(result, divergences=[each for each in found if each])


def to_json(setup: Setup, job: Job, result: Result) -> dict[str, Any]:
  """The whole record of a run: its numbers, and all that a replay needs."""
  return result.to_json() | dict(
      inputs=job.inputs(), manifest=record.manifest(job.seed, job.config, setup.models))


def _traits(setup: Setup, job: Job) -> summary.Traits:
  drafter = setup.speculative.drafter
  return summary.Traits(
      nodes=drafter.nodes, depth=drafter.depth,
      exact=job.config.temperature == 0 or setup.speculative.rule.coupled,
      # Only where nothing is drafted for the whole batch is one row scored.
      abstains=drafter.abstains and job.rows == 1 and not job.config.strict,
      stops=job.config.stop_below > 0)


def _costs(setup: Setup, job: Job, answers: list[dialogue.Answer]) -> theory.Costs | None:
  drafter = setup.speculative.drafter
  if drafter.nodes == 0:
    return None
  first = [answer.prompt for answer in answers if answer.turn == 0]
  return costs.measure(
      setup.speculative, setup.params, first[:job.rows], job.config.max_new_tokens,
      (drafter.nodes + 1,))
