"""Measured costs of drafters side by side, and the gamma that they make the fastest."""

import math

from specjax import theory
from specjax.launch.text_table import text_table

ALPHAS = tuple(tenth / 10 for tenth in range(1, 11))
GAMMAS = range(1, theory.MOST_GAMMA + 1)
LEGEND = """
V(n): target pass over n rows of each sequence / over one. c: one draft step / one target pass.
overhead: what a round takes besides passes and drafting / one target pass. speed-up: that of the
best gamma for drafted tokens that are accepted independently with probability alpha, by the costs
above; gamma 0 is plain decoding. break-even: the alpha from which a gamma is faster than plain
decoding; - where none is. measured: now, or when a measurement that was kept is from."""
MIXED = """
These rows were measured at different times, so part of their differences may be the machine's:
--remeasure measures all of them again."""
_DAY = len("2026-01-01")


def report(found: dict[str, theory.Costs], kept: dict[str, str | None]) -> str:
  """The tables and what their columns mean.

  Args:
    found: the costs of each drafter.
    kept: when each was measured, ISO 8601; None for this run.
  """
  tables = "\n\n".join((_passes(found, kept), _best(found), _break_even(found)))
  days = {when and when[:_DAY] for when in kept.values()}
  return "\n".join([tables, *([MIXED] if len(days) > 1 else []), LEGEND])


def as_data(found: dict[str, theory.Costs], kept: dict[str, str | None]) -> dict:
  """The same as plain data, keyed by drafter, then by alpha or gamma as text."""
  return dict(
      costs=found, kept=kept,
      best={name: {str(alpha): theory.best_gamma(costs, alpha) for alpha in ALPHAS}
            for name, costs in found.items()},
      break_even={name: {str(gamma): theory.break_even(costs, gamma) for gamma in GAMMAS}
                  for name, costs in found.items()})


def _passes(found: dict[str, theory.Costs], kept: dict[str, str | None]) -> str:
  widths = [n for n in next(iter(found.values())).window if n > 1]
  rows = [
      [name, f"{1e3 * costs.pass_seconds:.2f}", *(f"{costs.window[n]:.2f}" for n in widths),
       f"{costs.draft_step:.3f}", f"{costs.overhead:.3f}",
       f"kept, {kept[name]}" if kept[name] else "now"]
      for name, costs in found.items()]
  return text_table(
      ["drafter", "pass, ms", *(f"V({n})" for n in widths), "c", "overhead", "measured"], rows)


def _best(found: dict[str, theory.Costs]) -> str:
  rows = []
  for name, costs in found.items():
    best = {alpha: theory.best_gamma(costs, alpha) for alpha in ALPHAS}
    rows.append([name, *(f"{gamma}: {theory.predict(costs, alpha, gamma):.2f}"
                         for alpha, gamma in best.items())])
  return text_table(["best gamma: speed-up at alpha", *map(str, ALPHAS)], rows)


def _break_even(found: dict[str, theory.Costs]) -> str:
  rows = []
  for name, costs in found.items():
    alphas = [theory.break_even(costs, gamma) for gamma in GAMMAS]
    rows.append([name, *("-" if math.isnan(alpha) else f"{alpha:.2f}" for alpha in alphas)])
  return text_table(["break-even alpha for gamma", *map(str, GAMMAS)], rows)
