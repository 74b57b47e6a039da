"""Measures what passes and drafts cost on this device, and which gamma that makes the fastest.

    python -m experiments.costs [--drafter=ngram,layer_skip:10] [--config.batch_size=4] [--json]
    python -m experiments.costs --drafter=ngram,layer_skip:10 --remeasure

Costs are kept in $SPECJAX_CACHE/costs (~/.cache/specjax/costs) and are those that
--config.gamma=auto chooses by; --remeasure replaces them. One minute for a drafter the first time,
with the default model on two cores.
"""

import dataclasses
import functools
import math

from absl import flags

from experiments.benchmarks import tables
from specjax import theory
from specjax.launch import app, build, config as config_lib, record
from specjax.measure import auto, cost_store

_CONFIG = config_lib.define()
_DRAFTER = flags.DEFINE_list(
    "drafter", None, "drafters to compare, comma-separated; that of the configuration by default")
_REMEASURE = flags.DEFINE_bool(
    "remeasure", False, "measure again, and replace what $SPECJAX_CACHE/costs keeps of these "
    "drafters (~/.cache/specjax/costs where the variable is not set)")
_PROMPT = 64  # tokens
_ALPHAS = tuple(tenth / 10 for tenth in range(1, 11))
_GAMMAS = range(1, theory.MOST_GAMMA + 1)
_LEGEND = """
V(n): target pass over n rows of each sequence / over one. c: one draft step / one target pass.
overhead: what a round takes besides passes and drafting / one target pass. speed-up: that of the
best gamma for drafted tokens that are accepted independently with probability alpha, by the costs
above; gamma 0 is plain decoding. break-even: the alpha from which a gamma is faster than plain
decoding; - where none is. measured: now, or when a measurement that was kept is from."""
_MIXED = """
These rows were measured at different times, so part of their differences may be the machine's:
--remeasure measures all of them again."""


def main(_):
  config = dataclasses.replace(config_lib.read(_CONFIG), gamma=auto.PILOT_GAMMA, stop_below=0.0)
  load = functools.cache(build.load_model)
  found, kept, models = {}, {}, {}
  for drafter in _DRAFTER.value or [config.drafter]:
    chosen = dataclasses.replace(config, drafter=drafter)
    setup = build.build(chosen, load)
    limit = setup.plain.target.max_length or _PROMPT
    text = [0] * min(_PROMPT, limit // 2)  # what it says makes no difference
    rows = 1 if config.strict else config.batch_size
    found[drafter], kept[drafter] = cost_store.load_or_measure(
        setup, chosen, [text] * rows, again=_REMEASURE.value)
    models |= setup.models
  print("\n\n".join(map(tables.table, (_passes(found, kept), _best(found), _break_even(found)))))
  if len({when and when[:len("2026-01-01")] for when in kept.values()}) > 1:
    print(_MIXED)
  print(_LEGEND)
  app.emit("costs", dict(
      costs=found, kept=kept,
      best={name: {str(alpha): theory.best_gamma(costs, alpha) for alpha in _ALPHAS}
            for name, costs in found.items()},
      break_even={name: {str(gamma): theory.break_even(costs, gamma) for gamma in _GAMMAS}
                  for name, costs in found.items()},
      manifest=record.manifest(app.SEED.value, config, models)))


def _passes(found: dict[str, theory.Costs], kept: dict[str, str | None]) -> list[list[str]]:
  widths = next(iter(found.values())).window
  rows = [["drafter", "pass, ms", *(f"V({n})" for n in widths if n > 1), "c", "overhead",
           "measured"]]
  for name, costs in found.items():
    rows.append([
        name, f"{1e3 * costs.pass_seconds:.2f}",
        *(f"{cost:.2f}" for n, cost in costs.window.items() if n > 1),
        f"{costs.draft_step:.3f}", f"{costs.overhead:.3f}",
        f"kept, {kept[name]}" if kept[name] else "now"])
  return rows


def _best(found: dict[str, theory.Costs]) -> list[list[str]]:
  rows = [["best gamma: speed-up at alpha", *map(str, _ALPHAS)]]
  for name, costs in found.items():
    best = {alpha: theory.best_gamma(costs, alpha) for alpha in _ALPHAS}
    rows.append([name, *(f"{gamma}: {theory.predict(costs, alpha, gamma):.2f}"
                         for alpha, gamma in best.items())])
  return rows


def _break_even(found: dict[str, theory.Costs]) -> list[list[str]]:
  rows = [["break-even alpha for gamma", *map(str, _GAMMAS)]]
  for name, costs in found.items():
    alphas = [theory.break_even(costs, gamma) for gamma in _GAMMAS]
    rows.append([name, *("-" if math.isnan(alpha) else f"{alpha:.2f}" for alpha in alphas)])
  return rows


if __name__ == "__main__":
  app.run(main)
