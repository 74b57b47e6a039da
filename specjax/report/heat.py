"""Draws heat maps of the speed-up: gamma across, temperature down, the values in the cells."""

import math

import matplotlib
import numpy as np
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from specjax.report import figure as figure_lib, style
from specjax.report.figure import Figure, Panel

_CELL = (0.66, 0.36)  # inches
_LEAST_RANGE = math.log2(1.5)  # smaller differences do not get the strongest colours
_LIGHT = 0.6  # of the range; beyond it the ground is dark


def page(figure: Figure) -> Canvas:
  """All panels with one scale of colours, which is logarithmic around 1."""
  panels = [panel for group in figure.groups for panel in group]
  tables = [_table(panel) for panel in panels]
  columns = style.columns(figure_lib.drafters(figure), len(panels))
  rows = math.ceil(len(panels) / columns)
  deep, wide = (max(table.shape[axis] for table in tables) for axis in (0, 1))
  width = max(style.WIDTH, columns * (wide * _CELL[0] + 0.4) + 1.2)
  canvas, axes = style.grid(rows, columns, (width, rows * (deep * _CELL[1] + 0.6) + 0.3))
  largest = max((abs(math.log2(v)) for t in tables for v in t.flat if v > 0), default=0)
  norm = CenteredNorm(0, max(_LEAST_RANGE, largest))
  for panel, table, axis in zip(panels, tables, axes.flat):
    image = _draw(axis, panel, table, norm)
    axis.set_title(panel.title if len(panels) > 1 else "Speed-up over plain decoding")
  style.label_edges(axes, "γ, drafted tokens a round")
  bar = canvas.colorbar(image, ax=axes, label="speed-up", shrink=0.9, aspect=16, pad=0.02)
  ticks = [t for t in (1/8, 1/4, 1/2, 2/3, 1, 1.5, 2, 3, 4, 6, 8)
           if abs(math.log2(t)) <= norm.halfrange + 1e-9]
  bar.set_ticks([math.log2(t) for t in ticks], labels=[f"{t:.2g}" for t in ticks])
  bar.outline.set_visible(False)
  return canvas


def _gammas(panel: Panel) -> list[float]:
  return sorted({point.x.value for series in panel.series for point in series.points})


def _table(panel: Panel) -> np.ndarray:
  """float[temperatures, gammas], NaN where there is no cell."""
  gammas = _gammas(panel)
  table = np.full((len(panel.series), len(gammas)), np.nan)
  for row, series in enumerate(panel.series):
    for point in series.points:
      table[row, gammas.index(point.x.value)] = point.y.value
  return table


def _draw(axis, panel: Panel, table: np.ndarray, norm):
  positive = np.where(table > 0, table, np.nan)
  image = axis.imshow(
      np.log2(positive), cmap=matplotlib.colormaps["RdBu"], norm=norm, aspect="auto")
  axis.grid(False)
  axis.spines[:].set_visible(False)
  axis.tick_params(length=0)
  axis.set_xticks(range(table.shape[1]), [f"{gamma:g}" for gamma in _gammas(panel)])
  axis.set_yticks(range(table.shape[0]), [series.label for series in panel.series])
  for (row, column), value in np.ndenumerate(table):
    dark = value > 0 and abs(math.log2(value)) > _LIGHT * norm.halfrange
    axis.text(column, row, "-" if math.isnan(value) else f"{value:.2f}", ha="center", va="center",
              color="white" if dark else "black")
  if not np.isnan(table).all():
    row, column = np.unravel_index(np.nanargmax(table), table.shape)
    axis.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, fill=False, linewidth=1.8))
  return image
