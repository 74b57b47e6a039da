"""Draws the figures of a report; with `heat` and `style` the only place that needs matplotlib."""

import math

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter
import numpy as np

from specjax.stats import heat, style
from specjax.stats.figure import Figure, Panel, Series

_PANELS_A_PAGE = 12
_LABELS = {
    "gamma": "γ, drafted tokens a round",
    "tau": "τ, tokens / target pass",
    "alpha": "α, accepted / tested",
    "speedup": "speed-up",
    "predicted_speedup": "predicted speed-up",
    "position": "position in the draft",
    "conditional": "accepted / tested",
    "joint": "accepted / target passes",
    "emitted": "tokens emitted by a round",
    "share": "share of rounds",
    "batch_size": "batch size, rows",
    "tokens_per_second": "tokens/s, all rows",
    "alpha_token": "α of token, the maximal coupling",
    "alpha_gumbel": "α of gumbel",
}
_LINES = {"theory": "-", "predicted": "--", "plain": ":"}


def draw(figure: Figure) -> list[bytes]:
  """The figure as PNGs, one a page."""
  per_page = _PANELS_A_PAGE // len(figure.groups[0])
  pages = [figure.groups[i:i + per_page] for i in range(0, len(figure.groups), per_page)]
  page = heat.page if figure.form == "heat" else _page
  with matplotlib.rc_context(style.SETTINGS):
    return [style.png(page(figure._replace(groups=groups))) for groups in pages]


def _page(figure: Figure) -> Canvas:
  """One group fills a row; of several each stands in a column, its panels one below the other."""
  groups, depth = figure.groups, len(figure.groups[0])
  if len(groups) == 1:
    rows, columns = 1, depth
    size = (4.9, 5.2) if figure.form == "scatter" else (3.6 * depth, 3.2) if depth > 1 else (5.4, 3)
    slots = [[(0, level) for level in range(depth)]]
  else:
    columns = style.columns(len(groups))
    rows = depth * math.ceil(len(groups) / columns)
    size = (2.9 * columns if columns > 2 else 7.2, 2.15 * rows + 0.6)
    slots = [[(depth * (i // columns) + level, i % columns) for level in range(depth)]
             for i in range(len(groups))]
  canvas, axes = style.grid(figure.title, rows, columns, size)
  names = _names(figure)
  for group, places in zip(groups, slots):
    for level, (panel, place) in enumerate(zip(group, places)):
      axis = axes[place]
      _FORMS[figure.form](axis, panel, names)
      axis.set(xlabel=_LABELS[panel.x], ylabel=_LABELS[panel.y])
      axis.set_title(style.shorten(panel.title) if level == 0 and len(groups) > 1 else "")
  _share_limits(figure, axes, slots)
  style.hide_empty(axes)
  _legend(canvas, figure, names)
  return canvas


def _names(figure: Figure) -> list[str]:
  """What has a colour of its own, in order: all but reference lines and plain decoding."""
  return list(dict.fromkeys(
      s.label for group in figure.groups for panel in group for s in panel.series
      if s.kind not in ("line", "plain")))


def _values(series: Series):
  x, y = ([getattr(point, axis) for point in series.points] for axis in ("x", "y"))
  return (np.array([e.value for e in x]), np.array([e.value for e in y]),
          np.array([e.low for e in y]), np.array([e.high for e in y]))


def _curves(axis: Axes, panel: Panel, names: list[str]) -> None:
  """Measured points with intervals, and lines of what theory makes of them."""
  ticks = sorted({p.x.value for s in panel.series if s.kind == "measured" for p in s.points})
  logarithmic = panel.x == "batch_size"
  spread = 0.008 * (math.log2(ticks[-1] / ticks[0]) if logarithmic else ticks[-1]) if ticks else 0
  for series in panel.series:
    x, y, low, high = _values(series)
    if series.kind != "measured":
      colour = style.GREY if series.kind == "plain" else style.colour(
          names.index(series.label), len(names))
      axis.plot(x, y, _LINES[series.kind], color=colour, zorder=2)
      continue
    place = names.index(series.label)
    colour = style.colour(place, len(names))
    aside = spread * (2 * place - len(names) + 1)  # so that intervals do not hide each other
    x = x * 2**aside if logarithmic else x + aside
    style.bars(axis, x, low, high, color=colour, zorder=3)
    joined = "" if panel.x == "gamma" else "-"
    axis.plot(x, y, style.marker(place) + joined, color=colour, zorder=4,
              markeredgecolor="white", markeredgewidth=0.6)
  _ticks(axis, panel, ticks, logarithmic)
  if panel.x == "batch_size" and panel.y == "speedup":
    axis.axhline(1, color=style.GREY, linewidth=1, zorder=1)
    axis.annotate("plain decoding", (0, 1), xycoords=("axes fraction", "data"), xytext=(3, 2),
                  textcoords="offset points", color=style.GREY, fontsize=7.5)


def _ticks(axis: Axes, panel: Panel, ticks: list[float], logarithmic: bool) -> None:
  if logarithmic:
    axis.set_xscale("log", base=2)
  if len(ticks) <= 10:
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
  else:
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
  axis.minorticks_off()
  if panel.x == "gamma":
    axis.set_xlim(left=0 if panel.y == "tau" else None)


def _bars(axis: Axes, panel: Panel, names: list[str]) -> None:
  """Groups of bars, one of each series."""
  width = 0.84 / max(1, len(names))
  for series in panel.series:
    x, y, low, high = _values(series)
    place = names.index(series.label)
    x = x + width * (place - (len(names) - 1) / 2)
    axis.bar(x, y, 0.92 * width, color=style.colour(place, len(names)))
    style.bars(axis, x, low, high, color="#222222")
  axis.xaxis.set_major_locator(MaxNLocator(integer=True))
  axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
  axis.grid(False, axis="x")


def _scatter(axis: Axes, panel: Panel, names: list[str]) -> None:
  """Points with intervals both ways, beside reference lines, on one scale."""
  lines = [series for series in panel.series if series.kind == "line"]
  clouds = [series for series in panel.series if series.kind != "line"]
  for series, dashes in zip(lines, ("-", "--")):
    x, y, *_ = _values(series)
    axis.plot(x, y, dashes, color=style.GREY, linewidth=1.1, label=series.label)
  for series in clouds:
    x, y, low, high = _values(series)
    place = names.index(series.label)
    colour = style.colour(place, len(names))
    style.bars(axis, x, low, high, color=colour, alpha=0.45)
    axis.hlines(y, [p.x.low for p in series.points], [p.x.high for p in series.points],
                color=colour, alpha=0.45, linewidth=1.2)
    axis.plot(x, y, style.marker(place), color=colour, markeredgecolor="white",
              markeredgewidth=0.6)
  found = [e.value for s in clouds for p in s.points for e in (p.x, p.y)]
  end = max(p.x.value for s in lines for p in s.points)
  start = math.floor(10 * (min(found) - 0.1 * (end - min(found)))) / 10
  axis.set(xlim=(max(0, start), end), ylim=(max(0, start), end), aspect="equal")


_FORMS = {"curves": _curves, "bars": _bars, "scatter": _scatter}


def _share_limits(figure: Figure, axes, slots) -> None:
  """Panels of one quantity get one scale, so that they can be compared."""
  if figure.form == "scatter":
    return
  for level in range(len(slots[0])):
    alike = [axes[places[level]] for places in slots]
    y = figure.groups[0][level].y
    top = max(axis.get_ylim()[1] for axis in alike)
    bottom, top = {"alpha": (0, 1.03), "conditional": (0, 1.03), "joint": (0, 1.03),
                   "tau": (0.9, top)}.get(y, (0, top))
    for axis in alike:
      axis.set_ylim(bottom, top)


def _legend(canvas: Canvas, figure: Figure, names: list[str]) -> None:
  """What colours mean, then what lines mean."""
  kinds = list(dict.fromkeys(
      s.kind for group in figure.groups for panel in group for s in panel.series))
  dots = "s" if figure.form == "bars" else None
  handles = [
      Line2D([], [], linestyle="", marker=dots or style.marker(i), label=style.shorten(name),
             color=style.colour(i, len(names))) for i, name in enumerate(names)]
  if figure.form == "curves":
    handles += [Line2D([], [], linestyle=_LINES[kind], color=style.GREY if kind == "plain" else "#333333",
                       label="plain decoding" if kind == "plain" else kind)
                for kind in kinds if kind in _LINES]
  if figure.form == "scatter":
    handles += canvas.axes[0].get_legend_handles_labels()[0]
  canvas.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 5),
                handletextpad=0.4, columnspacing=1.4)
