"""The sections of `experiments.bench`: each measures, shows a table and names its goals."""

import contextlib
import sys
from typing import Any, NamedTuple

import tqdm

from experiments.benchmarks import contest, decoders, kernels, opponents, passes, tables
from experiments.benchmarks.decoders import Bench
from experiments.benchmarks.tables import Goal
from specjax.types import Array


class Section(NamedTuple):
  """What one section found."""

  result: Any  # as plain data or records
  text: str
  goals: list[Goal]


def model(bench: Bench, key: Array, repeats: int) -> Section:
  """The cost of wide passes and of what surrounds them."""
  longest = max(bench.prompts, key=len)
  measured = bench.decoders | {decoders.COUPLED: decoders.coupled(bench)}
  found = passes.measure(measured, key, longest, repeats * 3)
  return Section(found, tables.model(found), _model_goals(found) if bench.is_default else [])


def peers(bench: Bench, key: Array, repeats: int, python: str) -> Section:
  """Decoding side by side; `python` is the interpreter that has the peers."""
  size = bench.config.max_new_tokens
  contestants = {
      name: contest.ours(bench.setup, decoder, params, key, size)
      for name, (decoder, params) in bench.decoders.items()}
  with contextlib.ExitStack() as stack:
    others = opponents.start(bench, python, stack)
    contestants |= others.contestants
    total = len(contestants) * len(bench.prompts) * repeats
    with tqdm.tqdm(total=total, unit="text", file=sys.stderr, disable=None) as bar:
      played = contest.play_all(contestants, bench.prompts, repeats, bar.update)
  results = contest.judge(bench.setup, bench.conversations, bench.prompts, played)
  found = dict(
      decoders={name: dict(each._asdict(), rate=each.rate) for name, each in results.items()},
      ratios={name: {other: contest.ratio(results, name, other) for other in results}
              for name in results},
      versions=others.versions, skipped=others.skipped, threads=opponents.threads(),
      gamma=bench.config.gamma, prompts=[each.name for each in bench.conversations],
      max_new_tokens=size)
  return Section(
      found, tables.peers(results, others.skipped, len(bench.prompts)),
      _peer_goals(results) if bench.is_default else [])


def logits(repeats: int) -> Section:
  """Transforms against their sorting version."""
  found = kernels.transforms(rows=9, vocab=49152, repeats=repeats * 3)
  chain = list(found.ratio)[-1]
  return Section(
      found, tables.logits(found), [Goal(f"sorting / ours, {chain}", found.ratio[chain], True, 5)])


def verify(rules: list[str], repeats: int) -> Section:
  """Rules against a copy of the laws they judge."""
  found = kernels.verification(rules, batch=64, gamma=8, vocab=128256, repeats=repeats)
  return Section(found, tables.verify(found), [
      Goal(f"verify / copy, {rule}", ratio, False, 3) for rule, ratio in found.ratio.items()])


def _model_goals(found: passes.Passes) -> list[Goal]:
  goals = [Goal("V(4)", found.relative[4], False, 1.4), Goal("V(8)", found.relative[8], False, 1.7)]
  goals += [Goal(f"outside of passes, {name}", each.fraction, False, 0.05)
            for name, each in found.rounds.items() if name != decoders.COUPLED]
  # Without models every token is guessed, so the noise is that of gamma + 1 tokens: more than
  # that of a real round, which emits tau.
  coins, coupled = list(found.rounds.values())[1], found.rounds[decoders.COUPLED]
  noise = (coupled.outside - coins.outside) / coupled.round
  return goals + [Goal("noise of a coupled round", noise, False, 0.1)]


def _peer_goals(results: dict[str, contest.Result]) -> list[Goal]:
  wanted = [("transformers plain", 2.0), ("llama.cpp plain", 0.85)]
  goals = [
      Goal(f"{contest.PLAIN} / {name}", contest.ratio(results, contest.PLAIN, name)[0], True, bound)
      for name, bound in wanted if name in results]
  if "specjax ngram" in results:
    goals += [
        Goal(f"specjax ngram / {contest.PLAIN}, {category}",
             contest.ratio(results, "specjax ngram", contest.PLAIN, category)[0], True, 1)
        for category in ("summarising", "extraction")
        if category in results[contest.PLAIN].category_rates]
  return goals
