"""Figures over gamma: the heat map of the speed-up, and tau and alpha beside their theory."""

import math

import numpy as np

from specjax import theory
from specjax.report import cells as cells_lib, figure
from specjax.report.cells import Cell
from specjax.report.parts import Estimate
from specjax.stats import estimates


def speedup(cells: list[Cell]) -> figure.Figure | figure.Omitted:
  """The heat map of gamma and temperature, one for each method and batch size."""
  title, cells = "Speed-up over plain decoding by gamma and temperature", figure.timed(cells)
  same = cells_lib.constant(cells)
  groups = []
  for (_, batch_size), panel in figure.grouped(cells, lambda c: (c.method, c.batch_size)):
    if len({c.gamma for c in panel}) < 2:
      continue
    heading = cells_lib.label(panel[0], same)
    heading += "" if "batch_size" in same else f", batch {batch_size}"
    series = [
        figure.curve(figure.at_temperature(temperature), "measured", row, lambda c: c.speedup)
        for temperature, row in figure.grouped(panel, lambda c: c.temperature)]
    groups.append([figure.Panel(heading, "gamma", "speedup", series)])
  if not groups:
    why = "no method was run with two values of gamma" if cells else figure.UNTIMED
    return figure.Omitted("speedup", title, why)
  return figure.Figure(
      "speedup", "heat", title,
      "Plain seconds per token / speculative seconds per token. Blue is faster than plain "
      "decoding, red is slower; the fastest cell of each panel is framed.", groups)


def tau_alpha(cells: list[Cell]) -> figure.Figure | figure.Omitted:
  """tau and alpha against gamma, with what equation (1) of Leviathan et al. makes of alpha."""
  title, same = "Tokens per target pass and acceptance by draft length", cells_lib.constant(cells)
  groups, (panel, label) = [], figure.compared(same)
  for _, shared in figure.grouped(figure.smallest_batch(cells), panel):
    if len({c.gamma for c in shared if c.gamma}) < 2:
      continue
    heading, both = figure.heading(shared, same), ([], [])
    for name, curve in figure.grouped(shared, label):
      for series, quantity, line in zip(both, ("tau", "alpha"), _theory(curve)):
        series.append(figure.curve(name, "measured", curve, lambda c, q=quantity: getattr(c, q)))
        series.append(figure.Series(name, "theory", line))
    groups.append([figure.Panel(heading, "gamma", y, s) for y, s in zip(("tau", "alpha"), both)])
  if not groups:
    return figure.Omitted("tau_alpha", title, "no method was run with two values of gamma above 0")
  return figure.Figure(
      "tau_alpha", "curves", title,
      "Points: measured, with 95 % bootstrap intervals over prompts. Lines: one acceptance rate "
      "alpha for all gamma, pooled over them, and the tokens that follow from it, 1 + f (E - 1) "
      "with E = (1 - alpha^(gamma + 1)) / (1 - alpha) (Leviathan et al. 2023, equation 1: token by "
      "token, independent and alike) and f the measured share of rounds that had a draft."
      + figure.which_batch(cells), groups)


def _theory(curve: list[Cell]) -> tuple[list[figure.Point], list[figure.Point]]:
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
    tau.append(figure.Point(axes, Estimate(gamma), Estimate(tokens)))
    line.append(figure.Point(axes, Estimate(gamma), Estimate(alpha)))
  return tau, line[4:]  # gamma >= 1
