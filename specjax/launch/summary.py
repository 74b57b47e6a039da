"""The numbers of a decoding run, and the table that shows them beside their definitions."""

import math

import numpy as np

from specjax import theory
from specjax.launch.play import Answer
from specjax.stats import estimates


def summarise(
    answers: list[Answer], costs: theory.Costs | None, gamma: int, exact: bool,
    abstains: bool = False, stops: bool = False) -> dict:
  """The result of an experiment as a plain dict; NaN where there is nothing to divide by.

  Args:
    answers: of all turns.
    costs: measured, V(gamma + 1) among them; None for plain decoding.
    gamma: tokens drafted a round.
    exact: both ways of decoding must give one text (temperature 0, or a coupled rule).
    abstains: a round whose draft is empty was a single-row pass, as with prompt lookup alone in its
      batch.
    stops: drafts may end before they have gamma tokens. How long a batch of several rows goes on
      drafting is then not known from its counts, and there is no prediction.
  """
  total = lambda name: np.sum([getattr(a.counts, name) for a in answers], axis=0)
  drafted, tested, accepted = total("drafted"), total("tested"), total("accepted")
  rounds = int(total("rounds"))
  emitted = int(total("emitted"))
  seconds = np.array([(a.seconds, a.baseline_seconds) for a in answers])
  tokens = np.array([(len(a.tokens), len(a.baseline_tokens)) for a in answers])
  tau = estimates.ratio(emitted, rounds)
  drafting = estimates.ratio(drafted[0], rounds) if abstains else 1.0
  steps = _draft_steps(drafted, rounds, costs.rows) if stops and costs else float(gamma)
  return dict(
      tokens=[a.tokens for a in answers],
      text=[a.text for a in answers],
      prompts=[_of_prompt(a) for a in answers],
      tau=tau,
      tau_macro=float(np.mean(
          [estimates.ratio(a.counts.emitted, a.counts.rounds) for a in answers])),
      alpha=estimates.ratio(accepted.sum(), tested.sum()),
      acceptance_by_position=[estimates.ratio(a, t) for a, t in zip(accepted, tested)],
      acceptance_by_position_joint=[estimates.ratio(a, rounds) for a in accepted],
      rounds=rounds,
      tokens_per_second=estimates.ratio(*(x[:, 0].sum() for x in (tokens, seconds))),
      baseline_tokens_per_second=estimates.ratio(*(x[:, 1].sum() for x in (tokens, seconds))),
      speedup=_speedup(tokens, seconds),
      speedup_interval=estimates.interval(
          lambda drawn: _speedup(tokens[drawn], seconds[drawn]), len(answers)),
      predicted_speedup=_predicted(costs, tau, gamma, steps, drafting),
      drafting_rounds=drafting,
      drafted_tokens=estimates.ratio(drafted.sum(), rounds),
      draft_steps=steps,
      costs=costs and dict(
          pass_seconds=costs.pass_seconds, window=theory.window_cost(costs, gamma + 1),
          draft_step=costs.draft_step, rows=costs.rows),
      identical_to_baseline=(
          all(a.tokens == a.baseline_tokens for a in answers) if exact else None))


def table(result: dict, gamma: int) -> str:
  """The numbers of `summarise`, one a line, each with its definition."""
  number = lambda value, form: "-" if value is None or math.isnan(value) else format(value, form)
  positions = lambda values: " ".join(number(value, ".2f") for value in values) or "-"
  interval = result["speedup_interval"]
  within = "" if interval is None else (
      f", 95 % interval {interval[0]:.2f} to {interval[1]:.2f} over prompts")
  same = {True: "identical to plain decoding", False: "DIFFERS from plain decoding",
          None: "not comparable: independent samples"}[result["identical_to_baseline"]]
  costs = result["costs"]
  predicted = "" if costs is None else (
      f"; V = {costs['window']:.2f}, c = {costs['draft_step']:.3f} measured here")
  if result["drafting_rounds"] < 1:
    predicted += f"; {result['drafting_rounds']:.0%} of the rounds had a draft, V = 1 in the others"
  if math.isnan(result["draft_steps"]):
    predicted = "; unknown for a batch whose drafts end early"
  several = len(result["tokens"]) > 1
  macro = f" ({number(result['tau_macro'], '.2f')} as a mean over prompts)" if several else ""
  rows = [
      ("tau", number(result["tau"], ".2f"),
       f"tokens emitted / target passes, the extra token counted{macro}"),
      ("alpha", number(result["alpha"], ".2f"), "drafted tokens accepted / tested"),
      ("  by position", positions(result["acceptance_by_position"]),
       "accepted / tested at each position"),
      ("  joint", positions(result["acceptance_by_position_joint"]),
       "accepted at each position / target passes"),
      ("tokens/s", number(result["tokens_per_second"], ".1f"), "speculative, rounds only"),
      ("", number(result["baseline_tokens_per_second"], ".1f"), "plain, in turn with the above"),
      ("speed-up", number(result["speedup"], ".2f"),
       f"plain seconds per token / speculative seconds per token{within}"),
      ("  predicted", number(result["predicted_speedup"], ".2f"),
       f"tau / (V({gamma + 1}) + {result['draft_steps']:.3g} c){predicted}"),
      ("text", "", same)]
  width = max(len(value) for _, value, _ in rows)
  return "\n".join(f"{name:14}{value:>{width}}   {meaning}" for name, value, meaning in rows)


def _of_prompt(answer: Answer) -> dict:
  """What one answer adds to the sums, so that whoever reads a record can form them again."""
  counts = answer.counts
  return dict(
      name=answer.name, category=answer.category, turn=answer.turn,
      tokens=len(answer.tokens), seconds=answer.seconds,
      baseline_tokens=len(answer.baseline_tokens), baseline_seconds=answer.baseline_seconds,
      rounds=counts.rounds, emitted=counts.emitted, drafted=counts.drafted,
      tested=counts.tested, accepted=counts.accepted, lengths=counts.lengths)


def _draft_steps(drafted: np.ndarray, rounds: int, rows: int) -> float:
  """Mean steps of a drafter that stops early: the first, and one after each token but the last."""
  return estimates.ratio(rounds + drafted[:-1].sum(), rounds) if rows == 1 else math.nan


def _predicted(costs: theory.Costs | None, tau: float, gamma: int, steps: float, drafting: float):
  if costs is None or math.isnan(steps):
    return math.nan
  passes = drafting * theory.window_cost(costs, gamma + 1) + 1 - drafting
  return float(theory.predicted_speedup(tau, steps, costs.draft_step, passes))


def _speedup(tokens: np.ndarray, seconds: np.ndarray) -> float:
  """Ratio of seconds per token, plain over speculative; columns are (speculative, plain)."""
  emitted, spent = tokens.sum(0), seconds.sum(0)
  return estimates.ratio(spent[1] * emitted[0], emitted[1] * spent[0])
