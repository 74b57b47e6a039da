"""The least time of a decoding pass on several devices: a table and a figure."""

from typing import Callable, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas

from specjax import theory
from specjax.launch.text_table import text_table
from specjax.report import style

LEGEND = """
A pass reads every weight and every cached key and value once, and computes 2 FLOP for each
parameter and row and those of attention. ridge: FLOP a byte at which arithmetic takes as long as
reading. step: the larger of both times, a lower bound. tokens/s: plain decoding, all sequences
together, an upper bound. free rows: rows of each sequence up to which the pass still waits for
memory, so that they cost nearly nothing; gamma + 1 of them are scored in a round."""


class Bounds(NamedTuple):
  """What was found for one device."""

  dtype: str
  source: str  # of the device's figures
  step: theory.Roofline
  of: Callable[..., theory.Roofline]  # rows -> the bounds of such a pass


def table(found: dict[str, Bounds]) -> str:
  """One line a device."""
  rows = []
  for name, each in found.items():
    step = each.step
    times = (f"{1e3 * s:.3g}" for s in (step.memory_seconds, step.compute_seconds, step.seconds))
    rows.append([
        name, each.dtype, f"{step.bytes / 1e9:.4g}", f"{step.flops / 1e9:.4g}", f"{step.ridge:.4g}",
        *times, f"{step.tokens_per_second:.4g}", f"{step.free_rows:.4g}"])
  return text_table(
      ["device", "dtype", "GB", "GFLOP", "ridge", "memory, ms", "arithmetic, ms", "step, ms",
       "tokens/s", "free rows"], rows)


def png(found: dict[str, Bounds]) -> bytes:
  """The time of a pass against its rows; a mark where arithmetic takes over."""
  with matplotlib.rc_context(style.SETTINGS):
    return style.png(_draw(found))


def _draw(found: dict[str, Bounds]) -> Canvas:
  canvas, [[axis]] = style.grid(1, 1, (style.WIDTH, 4))
  axis.set(xscale="log", yscale="log", title="Least time of a pass. Marked: its last free row",
           xlabel="rows that a pass scores of each sequence, γ + 1", ylabel="ms")
  most = max(max(8 * each.step.free_rows, 16) for each in found.values())
  rows = np.unique(np.geomspace(1, most, 200).astype(int))
  for place, (name, each) in enumerate(found.items()):
    free, least = each.step.free_rows, 1e3 * each.of(rows=1).seconds
    colour = style.colour(place, len(found))
    axis.plot(rows, [1e3 * each.of(rows=int(n)).seconds for n in rows], color=colour)
    axis.plot(*([free, least] if free >= 1 else [[], []]), style.marker(place), color=colour,
              label=f"{name}: {free:.0f} free rows" if free >= 1 else f"{name}: no free row")
  style.plain_log(axis.xaxis, axis.yaxis)
  axis.legend()
  return canvas
