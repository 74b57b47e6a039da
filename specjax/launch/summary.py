"""The numbers of a decoding run, and the table that shows them beside their definitions."""

import math
from typing import Any, NamedTuple

import numpy as np

from specjax import theory
from specjax.launch.dialogue import Answer
from specjax.launch.result import CostResult, PromptResult, Result
from specjax.launch.text_table import text_table
from specjax.stats import estimates


class Traits(NamedTuple):
  """What is known of a setup before it decodes."""

  nodes: int  # of a draft; 0: plain decoding
  depth: int  # the drafting steps of a whole draft
  exact: bool  # both ways of decoding must give one text: temperature 0, or a coupled rule
  # A round whose draft is empty is a pass over a single row, as with prompt lookup alone in its
  # batch.
  abstains: bool = False
  # Drafts may end early. How long a batch of several rows goes on drafting is then not known from
  # its counts, and there is no prediction.
  stops: bool = False


def summarise(answers: list[Answer], costs: theory.Costs | None, traits: Traits) -> Result:
  """The result of a run, but for its divergences.

  Args:
    answers: of all turns.
    costs: measured, V(nodes + 1) among them; None for plain decoding.
    traits: of the setup that gave the answers.
  """
  prompts = [_of_prompt(answer) for answer in answers]
  acceptance = _acceptance(prompts)
  rounds = acceptance["rounds"]
  share = estimates.ratio(sum(p.drafting for p in prompts), rounds) if traits.abstains else 1.0
  steps = float(traits.depth)
  if traits.stops and costs:
    steps = _draft_steps(_total(prompts, "drafted"), rounds, costs.rows)
  return Result(
      tokens=[a.tokens for a in answers],
      text=[a.text for a in answers],
      prompts=prompts,
      nodes=traits.nodes,
      predicted_speedup=_predicted(costs, acceptance["tau"], traits.nodes, steps, share),
      drafting_rounds=share,
      draft_steps=steps,
      costs=costs and CostResult(
          costs.pass_seconds, theory.window_cost(costs, traits.nodes + 1), costs.draft_step,
          costs.rows),
      identical_to_baseline=(
          all(a.tokens == a.baseline_tokens for a in answers) if traits.exact else None),
      **acceptance, **_speed(prompts))


def _acceptance(prompts: list[PromptResult]) -> dict[str, Any]:
  """The fields of a result that speak of rounds."""
  drafted, tested, accepted = (
      _total(prompts, name) for name in ("drafted", "tested", "accepted"))
  rounds = sum(p.rounds for p in prompts)
  return dict(
      tau=estimates.ratio(sum(p.emitted for p in prompts), rounds),
      tau_macro=float(np.mean([estimates.ratio(p.emitted, p.rounds) for p in prompts])),
      alpha=estimates.ratio(accepted.sum(), tested.sum()),
      acceptance_by_position=[estimates.ratio(a, t) for a, t in zip(accepted, tested)],
      acceptance_by_position_joint=[estimates.ratio(a, rounds) for a in accepted],
      rounds=rounds, drafted_tokens=estimates.ratio(drafted.sum(), rounds))


def _speed(prompts: list[PromptResult]) -> dict[str, Any]:
  """The fields of a result that speak of measured seconds."""
  seconds = np.array([(p.seconds, p.baseline_seconds) for p in prompts])
  tokens = np.array([(p.tokens, p.baseline_tokens) for p in prompts])
  rates = [estimates.ratio(*sums) for sums in zip(tokens.sum(0), seconds.sum(0))]
  low_high = estimates.interval(
      lambda drawn: _speedup(tokens[drawn], seconds[drawn]), len(prompts))
  return dict(
      tokens_per_second=rates[0], baseline_tokens_per_second=rates[1],
      speedup=_speedup(tokens, seconds), speedup_interval=low_high and tuple(low_high))


def _total(prompts: list[PromptResult], name: str) -> np.ndarray:
  """[D], the counts of all prompts at each depth."""
  return np.sum([getattr(p, name) for p in prompts], axis=0)


def table(result: Result) -> str:
  """The numbers of a result as a Markdown table, each with its definition."""
  macro = ""
  if len(result.tokens) > 1:
    macro = f" ({_number(result.tau_macro, '.2f')} as a mean over prompts)"
  rows = [
      ("tau", _number(result.tau, ".2f"),
       f"tokens emitted / target passes, the extra token counted{macro}"),
      ("alpha", _number(result.alpha, ".2f"), "drafted tokens accepted / tested"),
      ("by position", _numbers(result.acceptance_by_position),
       "accepted / tested at each position"),
      ("joint", _numbers(result.acceptance_by_position_joint),
       "accepted at each position / target passes"),
      ("tokens/s", _number(result.tokens_per_second, ".1f"), "speculative, rounds only"),
      ("plain tokens/s", _number(result.baseline_tokens_per_second, ".1f"),
       "in turn with the above"),
      ("speed-up", _number(result.speedup, ".2f"),
       f"plain seconds per token / speculative seconds per token{_interval(result)}"),
      ("predicted", _number(result.predicted_speedup, ".2f"), _prediction(result)),
      ("text", "", {
          True: "identical to plain decoding", False: "DIFFERS from plain decoding",
          None: "not comparable: independent samples"}[result.identical_to_baseline])]
  return text_table(["", "value", "definition"], rows)


def _number(value: float, form: str) -> str:
  return "-" if math.isnan(value) else format(value, form)


def _numbers(values: list[float]) -> str:
  return " ".join(_number(value, ".2f") for value in values) or "-"


def _interval(result: Result) -> str:
  if result.speedup_interval is None:
    return ""
  return ", 95 % interval {:.2f} to {:.2f} over prompts".format(*result.speedup_interval)


def _prediction(result: Result) -> str:
  """The formula of the prediction, and what was put into it."""
  formula = f"tau / (V({result.nodes + 1}) + {result.draft_steps:.3g} c)"
  if math.isnan(result.draft_steps):
    return f"{formula}; unknown for a batch whose drafts end early"
  if result.costs is not None:
    formula += f"; V = {result.costs.window:.2f}, c = {result.costs.draft_step:.3f} measured here"
  if result.drafting_rounds < 1:
    formula += f"; {result.drafting_rounds:.0%} of the rounds had a draft, V = 1 in the others"
  return formula


def _of_prompt(answer: Answer) -> PromptResult:
  """What one answer adds to the sums, so that whoever reads a record can form them again."""
  counts = {name: np.asarray(value).tolist() for name, value in answer.counts._asdict().items()}
  return PromptResult(
      name=answer.name, category=answer.category, turn=answer.turn,
      tokens=len(answer.tokens), seconds=answer.seconds,
      baseline_tokens=len(answer.baseline_tokens), baseline_seconds=answer.baseline_seconds,
      **counts)


def _draft_steps(drafted: np.ndarray, rounds: int, rows: int) -> float:
  """Mean steps of a drafter that stops early: the first, and one after each token but the last."""
  return estimates.ratio(rounds + drafted[:-1].sum(), rounds) if rows == 1 else math.nan


def _predicted(
    costs: theory.Costs | None, tau: float, nodes: int, steps: float, drafting: float) -> float:
  if costs is None or math.isnan(steps):
    return math.nan
  passes = drafting * theory.window_cost(costs, nodes + 1) + 1 - drafting
  return float(theory.predicted_speedup(tau, steps, costs.draft_step, passes))


def _speedup(tokens: np.ndarray, seconds: np.ndarray) -> float:
  """Ratio of seconds per token, plain over speculative; columns are (speculative, plain)."""
  emitted, spent = tokens.sum(0), seconds.sum(0)
  return estimates.ratio(spent[1] * emitted[0], emitted[1] * spent[0])
