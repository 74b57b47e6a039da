"""Figures over gamma: the heat map of the speed-up, and tau and alpha beside their theory."""

import math

import numpy as np

from specjax import theory
from specjax.report import cells as cells_lib, figures
from specjax.report.cells import Cell
from specjax.report.parts import Estimate
from specjax.stats import estimates


def speedup(cells: list[Cell]) -> figures.Figure | figures.Omitted:
  """The heat map of gamma and temperature, one for each method and batch size."""
  title, cells = "Speed-up over plain decoding by gamma and temperature", figures.timed(cells)
  same = cells_lib.constant(cells)
  groups = []
  for (_, batch_size), panel in figures.grouped(cells, lambda c: (c.method, c.batch_size)):
    if len({c.gamma for c in panel}) < 2:
      continue
    heading = cells_lib.label(panel[0], same)
    heading += "" if "batch_size" in same else f", batch {batch_size}"
    series = [
        figures.curve(figures.at_temperature(temperature), "measured", row, lambda c: c.speedup)
        for temperature, row in figures.grouped(panel, lambda c: c.temperature)]
    groups.append([figures.Panel(heading, "gamma", "speedup", series)])
  if not groups:
    why = "no method was run with two values of gamma" if cells else figures.UNTIMED
    return figures.Omitted("speedup", title, why)
  return figures.Figure(
      "speedup", "heat", title,
      "Plain seconds per token / speculative seconds per token. Blue is faster than plain "
      "decoding, red is slower; the fastest cell of each panel is framed.", groups)


def tau_alpha(cells: list[Cell]) -> figures.Figure | figures.Omitted:
  """tau and alpha against gamma, with what equation (1) of Leviathan et al. makes of alpha."""
  title, same = "Tokens per target pass and acceptance by draft length", cells_lib.constant(cells)
  groups, (panel, label) = [], figures.compared(same)
  for _, shared in figures.grouped(figures.smallest_batch(cells), panel):
    if len({c.gamma for c in shared if c.gamma}) < 2:
      continue
    heading, both = figures.heading(shared, same), ([], [])
    for name, curve in figures.grouped(shared, label):
      for series, quantity, line in zip(both, ("tau", "alpha"), _theory(curve)):
        series.append(figures.curve(name, "measured", curve, lambda c, q=quantity: getattr(c, q)))
        series.append(figures.Series(name, "theory", line))
    groups.append([figures.Panel(heading, "gamma", y, s) for y, s in zip(("tau", "alpha"), both)])
  if not groups:
    return figures.Omitted("tau_alpha", title, "no method was run with two values of gamma above 0")
  return figures.Figure(
      "tau_alpha", "curves", title,
      "Points: measured, with 95 % bootstrap intervals over prompts. Lines: one acceptance rate "
      "alpha for all gamma, pooled over them, and the tokens that follow from it, 1 + f (E - 1) "
      "with E = (1 - alpha^(gamma + 1)) / (1 - alpha) (Leviathan et al. 2023, equation 1: token by "
      "token, independent and alike) and f the measured share of rounds that had a draft."
      + figures.which_batch(cells), groups)


def _theory(curve: list[Cell]) -> tuple[list[figures.Point], list[figures.Point]]:
  """tau and alpha at every gamma up to the largest, if alpha is one number."""
  drafting = [c.parts for c in curve if c.gamma]
  alpha = estimates.ratio(*(sum(p.accepted.sum() for p in drafting),
                            sum(p.tested.sum() for p in drafting)))
  share = estimates.ratio(sum(p.drafting.sum() for p in drafting),
                          sum(p.rounds.sum() for p in drafting))
  if math.isnan(alpha):
    return [], []
  tau, line = [], []
  for gamma in np.arange(0, max(c.gamma for c in curve) + 0.25, 0.25).tolist():  # smooth enough
    axes = curve[0].axes | dict(gamma=gamma)
    tokens = 1 + share * (float(theory.expected_tokens(alpha, gamma)) - 1)
    tau.append(figures.Point(axes, Estimate(gamma), Estimate(tokens)))
    line.append(figures.Point(axes, Estimate(gamma), Estimate(alpha)))
  return tau, line[4:]  # gamma >= 1
