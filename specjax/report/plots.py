"""Draws the figures of a report as PNG pages: where panels stand, their names, the legend."""

import math

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from specjax.report import cells as cells_lib, figure as figure_lib, heat, marks, style
from specjax.report.figure import Figure

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
_FORMS = {"curves": marks.curves, "bars": marks.bars, "scatter": marks.scatter}


def draw(figure: Figure) -> list[bytes]:
  """The figure as PNGs, one a page."""
  per_page = _PANELS_A_PAGE // len(figure.groups[0])
  pages = [figure.groups[i:i + per_page] for i in range(0, len(figure.groups), per_page)]
  page = heat.page if figure.form == "heat" else _page
  with matplotlib.rc_context(style.SETTINGS):
    return [style.png(page(figure._replace(groups=groups))) for groups in pages]


def _page(figure: Figure) -> Canvas:
  """The panels in their places."""
  names = _names(figure)
  alone = len(figure.groups) == 1
  canvas, axes, places = _grid(figure)
  for group, column in zip(figure.groups, places):
    for level, (panel, axis) in enumerate(zip(group, column)):
      _FORMS[figure.form](axis, panel, names)
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
  columns = style.columns(figure_lib.drafters(figure), groups)
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
    marked = marks.gammas(panel)
    handles += [
        Line2D([], [], linestyle="", color=style.GREY, marker=style.marker(place),
               label=f"γ = {gamma}")
        for place, gamma in enumerate(marked) if len(marked) > 1]
    handles += axis.get_legend_handles_labels()[0]
    axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1))
    return
  kinds = {s.kind for group in figure.groups for panel in group for s in panel.series}
  for kind in sorted(kinds & set(marks.LINES), reverse=True):
    handles.append(Line2D(
        [], [], linestyle=marks.LINES[kind], color=style.GREY if kind == "plain" else "#333333",
        label=_KINDS.get(kind, kind)))
  canvas.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 6),
                handletextpad=0.5, columnspacing=1.6)
