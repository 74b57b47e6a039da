"""Rows of sweeps that were never run: counts drawn from acceptances, times from costs."""

import itertools
import math

import numpy as np

from specjax import theory
from specjax.launch import strict_json
from specjax.launch.result import Outcome

CATEGORIES = ("chat", "code", "summarising", "extraction")
PASS = 0.02  # seconds of a single-row pass


def sweep(
    gammas=(2, 4, 8), temperatures=(0.0, 0.6, 1.0), rules=("token",), drafters=("ngram",),
    batch_sizes=(1,), seeds=(0,), prompts=16) -> list[dict]:
  """Rows as `experiments.sweep` writes them, for every combination."""
  settings = itertools.product(drafters, rules, temperatures, gammas, batch_sizes, seeds)
  return [row(number, *setting, prompts=prompts) for number, setting in enumerate(settings)]


def outcomes(rows: list[dict]) -> list[Outcome]:
  """The lines as `experiments.sweep` reads them."""
  return [Outcome.from_json(each) for each in rows]


def row(
    number: int, drafter: str, rule: str, temperature: float, gamma: int, batch_size: int = 1,
    seed: int = 0, prompts: int = 16) -> dict:
  """One row, its ratios taken from the sums of its prompts."""
  rng = np.random.default_rng((number, seed, gamma))
  alpha = {"ngram": 0.62, "layer_skip:10": 0.5}.get(drafter, 0.75) + 0.25 * (1 - temperature) / 2
  alpha *= (0.4 + 0.6 / (2 - alpha)) if rule == "gumbel" and temperature else 1
  window = 1 + 0.06 * gamma * (1 + 0.25 * math.log2(batch_size))
  step = {"ngram": 0.01, "layer_skip:10": 0.35}.get(drafter, 0.2)
  answers = [
      answer(rng, f"prompt-{place}", CATEGORIES[place % 4], gamma, alpha + 0.04 * (place % 4 - 1.5),
             0.75 if drafter == "ngram" else 1.0, window, step, batch_size)
      for place in range(prompts)]
  return strict_json.plain(dict(
      id=f"cell-{number}", error=None, wall_seconds=12.5, finished="2030-01-01T00:00:00+00:00",
      cell=dict(gamma=gamma, temperature=temperature, rule=rule, drafter=drafter, seed=seed,
                prompts="mini", batch_size=batch_size),
      result=result(answers, gamma, window, step, temperature == 0 or rule == "gumbel")))


def answer(
    rng, name, category, gamma, alpha, drafting, window, step, batch_size, length=96) -> dict:
  """The counts of one answer of `length` tokens, and the time that they take."""
  tested, accepted, had_draft = np.zeros(gamma, int), np.zeros(gamma, int), 0
  lengths, emitted, cost = np.zeros(gamma + 1, int), 0, 0.0
  while emitted < length:
    drafts = rng.random() < drafting and gamma > 0
    kept = int((rng.random(gamma) < min(alpha, 0.97)).cumprod().sum()) if drafts else 0
    count = min(kept + 1, length - emitted)
    kept = min(kept, count)
    tested[:min(kept + 1, gamma, count) if drafts else 0] += 1
    accepted[:kept] += 1
    had_draft += drafts
    lengths[count - 1] += 1
    emitted += count
    cost += (window if drafts else 1) + gamma * step
  noise = rng.normal(1, 0.04, 2)
  share = PASS * (1 + 0.1 * (batch_size - 1)) / batch_size
  return dict(
      name=name, category=category, turn=0, tokens=emitted, seconds=cost * share * noise[0],
      baseline_tokens=length, baseline_seconds=length * share * noise[1],
      rounds=int(lengths.sum()), emitted=emitted, drafting=int(had_draft),
      drafted=[int(had_draft)] * gamma, tested=tested.tolist(),
      accepted=accepted.tolist(), lengths=lengths.tolist())


def result(answers: list[dict], gamma: int, window: float, step: float, exact: bool) -> dict:
  """The fields of `specjax.launch.result.Result` that a report reads, as they are in JSON."""
  rounds = sum(a["rounds"] for a in answers)
  drafting = sum(a["drafting"] for a in answers) / rounds if gamma else 1.0
  tau = sum(a["emitted"] for a in answers) / rounds
  return dict(
      tokens=[[1] * a["tokens"] for a in answers], prompts=answers, tau=tau, rounds=rounds,
      drafting_rounds=drafting, draft_steps=float(gamma),
      costs=dict(pass_seconds=PASS, window=window, draft_step=step) if gamma else None,
      predicted_speedup=float(theory.predicted_speedup(
          tau, gamma, step, drafting * window + 1 - drafting)) if gamma else None,
      identical_to_baseline=True if exact else None)
