"""The house style of figures: colours that colour-blind readers tell apart, little ink, no pyplot."""

import io
import warnings

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe-Ito
MARKERS = "os^DvPX"
GREY = "#6b7580"
_DOTS_PER_INCH = 200
_TITLE = 36  # characters over a panel
SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "figure.titlesize": 10.5,
    "figure.titleweight": "bold",
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


def grid(title: str, rows: int, columns: int, size: tuple[float, float]) -> tuple[Canvas, list]:
  """An empty figure of so many inches and its axes, [rows][columns]."""
  canvas = Canvas(figsize=size, layout="constrained")
  canvas.suptitle(title, x=0.01, horizontalalignment="left")
  return canvas, canvas.subplots(rows, columns, squeeze=False)


def hide_empty(axes) -> None:
  """Takes away the axes that nothing was drawn on."""
  for axis in axes.flat:
    axis.set_visible(axis.has_data())


def columns(panels: int) -> int:
  """Of how many columns so many equal panels look best."""
  return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def colour(place: int, of: int):
  """The colour of series `place` out of so many; beyond seven, steps of one scale."""
  return COLOURS[place] if of <= len(COLOURS) else matplotlib.colormaps["viridis"](place / of)


def marker(place: int) -> str:
  return MARKERS[place % len(MARKERS)]


def shorten(name: str) -> str:
  """A name of one short line: the middle of a long one is left out."""
  line = " ".join("".join(c if c.isprintable() else " " for c in name).split())
  half = (_TITLE - 1) // 2
  return line if len(line) <= _TITLE else f"{line[:half]}…{line[-half:]}"


def bars(axis: Axes, x, low, high, **kwargs) -> None:
  """Intervals as vertical lines; a NaN draws nothing."""
  axis.vlines(x, low, high, linewidth=1.2, **kwargs)


def png(canvas: Canvas) -> bytes:
  """A figure as PNG; the same figure gives the same bytes."""
  buffer = io.BytesIO()
  with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a name in another script
    canvas.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
  return buffer.getvalue()
