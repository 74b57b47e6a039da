"""Figure over the batch size: where speculation stops paying off."""

from specjax.report import cells as cells_lib, figures
from specjax.report.cells import Cell
from specjax.report.parts import Estimate
from specjax.stats import estimates


def batch(cells: list[Cell]) -> figures.Figure | figures.Omitted:
  """Speed-up and tokens/s against the batch size."""
  title, cells = "Speed by batch size", figures.timed(cells)
  same = cells_lib.constant(cells)
  groups = []
  for (_, temperature), group in figures.grouped(cells, lambda c: (c.method, c.temperature)):
    drafting = [c for c in group if c.gamma]
    if len({c.batch_size for c in drafting}) < 2:
      continue
    speed, rate = [], []
    for gamma, curve in figures.grouped(drafting, lambda c: c.gamma):
      for series, measured, predicted in (
          (speed, lambda c: c.speedup, lambda c: Estimate(c.predicted)),
          (rate, lambda c: c.rate, lambda c: Estimate(c.predicted * c.baseline_rate))):
        for kind, y in (("measured", measured), ("predicted", predicted)):
          series.append(figures.curve(f"gamma = {gamma}", kind, curve, y, "batch_size"))
    rate.append(figures.Series("plain decoding", "plain", _plain(group)))
    heading = cells_lib.label(group[0], same)
    heading += "" if "temperature" in same else f", {figures.at_temperature(temperature)}"
    groups.append([figures.Panel(heading, "batch_size", "speedup", speed),
                   figures.Panel(heading, "batch_size", "tokens_per_second", rate)])
  if not groups:
    why = "no method was run with two batch sizes" if cells else figures.UNTIMED
    return figures.Omitted("batch", title, why)
  return figures.Figure(
      "batch", "curves", title,
      "Below the line at 1 speculation no longer pays. Measured with 95 % bootstrap intervals over "
      "prompts; predicted from tau and the costs V and c of a whole batch, so what parts the two "
      "is that a batch waits for the slowest of its rows. Tokens/s of all rows together.", groups)


def _plain(cells: list[Cell]) -> list[figures.Point]:
  """Tokens/s of plain decoding at each batch size, all that was measured beside it pooled."""
  return [
      figures.Point({name: value for name, value in group[0].axes.items() if name != "gamma"},
                   Estimate(size), Estimate(estimates.ratio(
                       sum(c.parts.baseline_tokens.sum() for c in group),
                       sum(c.parts.baseline_seconds.sum() for c in group))))
      for size, group in figures.grouped(cells, lambda c: c.batch_size)]
