"""Draws the figures of a report as PNG pages: panels with curves, bars, points or a heat map."""

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, PercentFormatter

from specjax.report import cells as cells_lib, figures, style
from specjax.report.figures import Figure, Panel, Series

_PANELS_A_PAGE = 12
_LABELS = {
    "gamma": "γ, drafted tokens a round",
    "tau": "τ, tokens / target pass",
    "alpha": "α, accepted / tested",
    "speedup": "speed-up",
    "predicted_speedup": "predicted speed-up",
    "measured_speedup": "measured speed-up",
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
_TITLES = {  # of panels that stand alone
    "tau": "Tokens per target pass",
    "alpha": "Acceptance rate",
    "conditional": "Conditional acceptance",
    "joint": "Joint acceptance",
    "speedup": "Speed-up over plain decoding",
    "tokens_per_second": "Throughput",
    "share": "Tokens emitted by a round",
    "measured_speedup": "Measured against predicted speed-up",
    "alpha_gumbel": "Gumbel against maximal coupling",
}
_KINDS = {"plain": "plain decoding", "theory": "i.i.d. acceptance (token)"}  # in the legend
_LINES = {"theory": "-", "predicted": "--", "plain": ":"}  # by kind of series
_ASIDE = 0.008  # of the x axis, between the points of two series at one place
_CELL = (0.66, 0.36)  # inches, of a heat map
_MIN_RANGE = math.log2(1.5)  # smaller differences do not get the strongest colours
_LIGHT = 0.6  # of the range of a heat map; beyond it the ground is dark


def pages(figure: Figure) -> list[bytes]:
  """The figure as PNGs, one a page."""
  per_page = _PANELS_A_PAGE // len(figure.groups[0])
  portions = [figure.groups[i:i + per_page] for i in range(0, len(figure.groups), per_page)]
  page = _heat_page if figure.form == "heat" else _page
  with matplotlib.rc_context(style.SETTINGS):
    return [style.png(page(figure._replace(groups=groups))) for groups in portions]


def _page(figure: Figure) -> Canvas:
  """The panels in their places."""
  draw_panel = {"curves": _curves, "bars": _bars, "scatter": _scatter}[figure.form]
  names = _names(figure)
  alone = len(figure.groups) == 1
  canvas, axes, places = _grid(figure)
  for group, column in zip(figure.groups, places):
    for level, (panel, axis) in enumerate(zip(group, column)):
      draw_panel(axis, panel, names)
      axis.set_title(_TITLES[panel.y] if alone else "" if level else panel.title)
      axis.set_ylabel(_LABELS[panel.y])
  _share_limits(figure, places)
  style.label_edges(axes, _LABELS[figure.groups[0][0].x], inner=alone)
  _legend(canvas, figure, names)
  return canvas


def _grid(figure: Figure) -> tuple[Canvas, np.ndarray, list[list]]:
  """The figure, all axes, and the axes of each group.

  A group that is alone fills a row; of several each stands in a column, one panel below the other.
  """
  depth, groups = len(figure.groups[0]), len(figure.groups)
  if groups == 1:
    height = 4.4 if figure.form == "scatter" else 3.1
    canvas, axes = style.grid(1, depth, (style.WIDTH, height))
    return canvas, axes, [list(axes[0])]
  columns = style.columns(figures.drafters(figure), groups)
  rows = math.ceil(groups / columns)
  width = 2.9 * columns if columns > 2 else style.WIDTH
  canvas, axes = style.grid(rows * depth, columns, (width, 1.95 * rows * depth + 0.7))
  places = [list(axes[depth * (i // columns):depth * (i // columns + 1), i % columns])
            for i in range(groups)]
  return canvas, axes, places


def _names(figure: Figure) -> list[str]:
  """What has a colour of its own, in order: all but reference lines and plain decoding."""
  return list(dict.fromkeys(
      s.label for group in figure.groups for panel in group for s in panel.series
      if s.kind not in ("line", "plain")))


def _share_limits(figure: Figure, places: list[list]) -> None:
  """Panels of one quantity get one scale, so that they can be compared."""
  if figure.form == "scatter":
    return
  for panel, alike in zip(figure.groups[0], zip(*places)):
    lowest = min(axis.get_ylim()[0] for axis in alike)
    top = max(axis.get_ylim()[1] for axis in alike)
    limits = {
        "alpha": (max(0, math.floor(10 * lowest) / 10), min(1.02, math.ceil(10 * top) / 10)),
        "conditional": (0, 1.03), "joint": (0, 1.03), "tau": (0.9, top)}.get(panel.y, (0, top))
    for axis in alike:
      axis.set_ylim(*limits)


def _legend(canvas: Canvas, figure: Figure, names: list[str]) -> None:
  """What colours mean, then what lines mean."""
  scatter = figure.form == "scatter"
  handles = [
      Line2D([], [], linestyle="", color=style.colour(place, len(names)),
             marker="s" if figure.form == "bars" else style.marker(0 if scatter else place),
             label=cells_lib.shorten(name).replace("gamma", "γ"))
      for place, name in enumerate(names)]
  if scatter:
    [axis], [[panel]] = canvas.axes, figure.groups
    marked = _marked_gammas(panel)
    handles += [
        Line2D([], [], linestyle="", color=style.GREY, marker=style.marker(place),
               label=f"γ = {gamma}")
        for place, gamma in enumerate(marked) if len(marked) > 1]
    handles += axis.get_legend_handles_labels()[0]
    axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1))
    return
  kinds = {s.kind for group in figure.groups for panel in group for s in panel.series}
  for kind in sorted(kinds & set(_LINES), reverse=True):
    handles.append(Line2D(
        [], [], linestyle=_LINES[kind], color=style.GREY if kind == "plain" else "#333333",
        label=_KINDS.get(kind, kind)))
  canvas.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 6),
                handletextpad=0.5, columnspacing=1.6)


def _curves(axis: Axes, panel: Panel, names: list[str]) -> None:
  """Measured points with intervals, and lines of what is expected of them."""
  ticks = sorted({p.x.value for s in panel.series if s.kind == "measured" for p in s.points})
  for series in panel.series:
    if series.kind == "measured":
      _measured(axis, panel, series, names, ticks)
    else:
      x, y, *_ = _values(series)
      axis.plot(x, y, _LINES[series.kind], color=_colour(series, names), zorder=2)
  if panel.x == "batch_size":
    axis.set_xscale("log", base=2)
    if panel.y == "speedup":
      axis.axhline(1, linestyle=_LINES["plain"], color=style.GREY)
  if len(ticks) <= 10:
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
  else:
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
  axis.minorticks_off()
  axis.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
  if panel.y == "tau":
    axis.set_xlim(left=0)


def _bars(axis: Axes, panel: Panel, names: list[str]) -> None:
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


def _scatter(axis: Axes, panel: Panel, names: list[str]) -> None:
  """Points with intervals both ways, one mark for each gamma, beside reference lines."""
  lines = [series for series in panel.series if series.kind == "line"]
  clouds = [series for series in panel.series if series.kind != "line"]
  marked = _marked_gammas(panel)
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


def _marked_gammas(panel: Panel) -> list[int]:
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


def _heat_page(figure: Figure) -> Canvas:
  """All panels with one scale of colours, which is logarithmic around 1."""
  panels = [panel for group in figure.groups for panel in group]
  tables = [_heat_table(panel) for panel in panels]
  columns = style.columns(figures.drafters(figure), len(panels))
  rows = math.ceil(len(panels) / columns)
  deep, wide = (max(table.shape[axis] for table in tables) for axis in (0, 1))
  width = max(style.WIDTH, columns * (wide * _CELL[0] + 0.4) + 1.2)
  canvas, axes = style.grid(rows, columns, (width, rows * (deep * _CELL[1] + 0.6) + 0.3))
  largest = max((abs(math.log2(v)) for t in tables for v in t.flat if v > 0), default=0)
  norm = CenteredNorm(0, max(_MIN_RANGE, largest))
  for panel, table, axis in zip(panels, tables, axes.flat):
    image = _heat_map(axis, panel, table, norm)
    axis.set_title(panel.title if len(panels) > 1 else "Speed-up over plain decoding")
  style.label_edges(axes, "γ, drafted tokens a round")
  bar = canvas.colorbar(image, ax=axes, label="speed-up", shrink=0.9, aspect=16, pad=0.02)
  ticks = [t for t in (1/8, 1/4, 1/2, 2/3, 1, 1.5, 2, 3, 4, 6, 8)
           if abs(math.log2(t)) <= norm.halfrange + 1e-9]
  bar.set_ticks([math.log2(t) for t in ticks], labels=[f"{t:.2g}" for t in ticks])
  bar.outline.set_visible(False)
  return canvas


def _heat_gammas(panel: Panel) -> list[float]:
  return sorted({point.x.value for series in panel.series for point in series.points})


def _heat_table(panel: Panel) -> np.ndarray:
  """float[temperatures, gammas], NaN where there is no cell."""
  gammas = _heat_gammas(panel)
  table = np.full((len(panel.series), len(gammas)), np.nan)
  for row, series in enumerate(panel.series):
    for point in series.points:
      table[row, gammas.index(point.x.value)] = point.y.value
  return table


def _heat_map(axis, panel: Panel, table: np.ndarray, norm):
  positive = np.where(table > 0, table, np.nan)
  image = axis.imshow(
      np.log2(positive), cmap=matplotlib.colormaps["RdBu"], norm=norm, aspect="auto")
  axis.grid(False)
  axis.spines[:].set_visible(False)
  axis.tick_params(length=0)
  axis.set_xticks(range(table.shape[1]), [f"{gamma:g}" for gamma in _heat_gammas(panel)])
  axis.set_yticks(range(table.shape[0]), [series.label for series in panel.series])
  for (row, column), value in np.ndenumerate(table):
    dark = value > 0 and abs(math.log2(value)) > _LIGHT * norm.halfrange
    axis.text(column, row, "-" if math.isnan(value) else f"{value:.2f}", ha="center", va="center",
              color="white" if dark else "black")
  if not np.isnan(table).all():
    row, column = np.unravel_index(np.nanargmax(table), table.shape)
    axis.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, fill=False, linewidth=1.8))
  return image
