"""What a panel shows, drawn on its axes: curves, bars, or points against points."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from specjax.report import style
from specjax.report.figure import Panel, Series

LINES = {"theory": "-", "predicted": "--", "plain": ":"}  # by kind of series
_ASIDE = 0.008  # of the x axis, between the points of two series at one place


def curves(axis: Axes, panel: Panel, names: list[str]) -> None:
  """Measured points with intervals, and lines of what is expected of them."""
  ticks = sorted({p.x.value for s in panel.series if s.kind == "measured" for p in s.points})
  for series in panel.series:
    if series.kind == "measured":
      _measured(axis, panel, series, names, ticks)
    else:
      x, y, *_ = _values(series)
      axis.plot(x, y, LINES[series.kind], color=_colour(series, names), zorder=2)
  if panel.x == "batch_size":
    axis.set_xscale("log", base=2)
    if panel.y == "speedup":
      axis.axhline(1, linestyle=LINES["plain"], color=style.GREY)
  if len(ticks) <= 10:
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
  else:
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
  axis.minorticks_off()
  axis.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
  if panel.y == "tau":
    axis.set_xlim(left=0)


def bars(axis: Axes, panel: Panel, names: list[str]) -> None:
  """Groups of bars, one of each series."""
  width = 0.84 / max(1, len(names))
  for series in panel.series:
    x, y, low, high = _values(series)
    x = x + width * (names.index(series.label) - (len(names) - 1) / 2)
    axis.bar(x, y, 0.92 * width, color=_colour(series, names))
    style.bars(axis, x, low, high, color="#222222")
  axis.xaxis.set_major_locator(MaxNLocator(integer=True))
  axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
  axis.grid(False, axis="x")


def scatter(axis: Axes, panel: Panel, names: list[str]) -> None:
  """Points with intervals both ways, one mark for each gamma, beside reference lines."""
  lines = [series for series in panel.series if series.kind == "line"]
  clouds = [series for series in panel.series if series.kind != "line"]
  marked = gammas(panel)
  for series, dashes in zip(lines, ("-", "--")):
    x, y, *_ = _values(series)
    axis.plot(x, y, dashes, color=style.GREY, linewidth=1.1, label=series.label)
  for series in clouds:
    x, y, low, high = _values(series)
    colour = _colour(series, names)
    style.bars(axis, x, low, high, color=colour, alpha=0.45)
    axis.hlines(y, [p.x.low for p in series.points], [p.x.high for p in series.points],
                color=colour, alpha=0.45, linewidth=1.2)
    for a, b, point in zip(x, y, series.points):
      axis.plot(a, b, style.marker(marked.index(point.axes["gamma"])), color=colour,
                markeredgecolor="white", markeredgewidth=0.6)
  found = [e.value for s in clouds for p in s.points for e in (p.x, p.y)]
  end = max(p.x.value for s in lines for p in s.points)
  start = max(0, math.floor(10 * (min(found) - 0.1 * (end - min(found)))) / 10)
  axis.set(xlim=(start, end), ylim=(start, end), aspect="equal", anchor="W")


def gammas(panel: Panel) -> list[int]:
  """Those of its cells, ascending."""
  return sorted({p.axes["gamma"] for s in panel.series for p in s.points if "gamma" in p.axes})


def _measured(axis, panel: Panel, series: Series, names: list[str], ticks: list[float]) -> None:
  """Points with intervals, moved aside so that those of several series do not hide each other."""
  x, y, low, high = _values(series)
  place = names.index(series.label)
  aside = _ASIDE * (2 * place - len(names) + 1)
  if panel.x == "batch_size":
    x = x * (ticks[-1] / ticks[0]) ** aside if ticks else x
  else:
    x = x + ticks[-1] * aside if ticks else x
  colour = _colour(series, names)
  style.bars(axis, x, low, high, color=colour, zorder=3)
  joined = "" if panel.x == "gamma" else "-"  # over gamma the theory joins them
  axis.plot(x, y, style.marker(place) + joined, color=colour, zorder=4)


def _colour(series: Series, names: list[str]):
  if series.label not in names:
    return style.GREY
  return style.colour(names.index(series.label), len(names))


def _values(series: Series) -> tuple[np.ndarray, ...]:
  """x, y, and the ends of the interval of y."""
  x, y = ([getattr(point, axis) for point in series.points] for axis in ("x", "y"))
  return (np.array([e.value for e in x]), np.array([e.value for e in y]),
          np.array([e.low for e in y]), np.array([e.high for e in y]))
