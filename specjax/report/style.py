"""The house style of figures: colours for colour-blind readers too, little ink, no pyplot."""

import io
import warnings

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullLocator

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe-Ito
MARKERS = "os^DvPX"
GREY = "#6b7580"
WIDTH = 7.2  # inches of a page with two columns or fewer
_DOTS_PER_INCH = 200
SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": "#e3e7eb",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "text.parse_math": False,  # names come from outside
    "xtick.color": GREY,
    "xtick.labelcolor": "black",
    "xtick.labelsize": 8.5,
    "ytick.color": GREY,
    "ytick.labelcolor": "black",
    "ytick.labelsize": 8.5,
}


def grid(rows: int, columns: int, size: tuple[float, float]) -> tuple[Canvas, np.ndarray]:
  """An empty figure of so many inches and its axes, [rows, columns]."""
  canvas = Canvas(figsize=size, layout="constrained")
  return canvas, canvas.subplots(rows, columns, squeeze=False)


def label_edges(axes: np.ndarray, x: str, inner: bool = False) -> None:
  """Hides empty panels; x is named below the lowest ones and y beside the first, or beside all."""
  for (row, column), axis in np.ndenumerate(axes):
    axis.set_visible(axis.has_data())
    if not any(below.has_data() for below in axes[row + 1:, column]):
      axis.set_xlabel(x)
    if column and not inner:
      axis.set_ylabel("")


def columns(drafters: int, panels: int) -> int:
  """One column a drafter if that fills the rows, else what looks best."""
  if drafters in (2, 3) and panels % drafters == 0:
    return drafters
  return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def colour(place: int, of: int):
  """The colour of series `place` out of so many; beyond seven, steps of one scale."""
  return COLOURS[place] if of <= len(COLOURS) else matplotlib.colormaps["viridis"](place / of)


def marker(place: int) -> str:
  return MARKERS[place % len(MARKERS)]


def bars(axis: Axes, x, low, high, **kwargs) -> None:
  """Intervals as vertical lines; a NaN draws nothing."""
  axis.vlines(x, low, high, linewidth=1.2, **kwargs)


def plain_log(*axes: Axis) -> None:
  """Logarithmic axes with ticks at 1, 2 and 5 of each decade, written as plain numbers."""
  for axis in axes:
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def png(canvas: Canvas) -> bytes:
  """A figure as PNG; the same figure gives the same bytes."""
  buffer = io.BytesIO()
  with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a name in another script
    canvas.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, bbox_inches="tight", pad_inches=0.05,
                   metadata={"Software": None})
  return buffer.getvalue()
