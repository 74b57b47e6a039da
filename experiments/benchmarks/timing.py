"""Times of things that are compared: in turn, so that all of them see the same machine."""

import statistics
import time
from typing import Callable

import jax


def in_turn(parts: dict[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
  """The seconds that each part reports, `repeats` times; one more round before them is discarded.

  Each round begins with another part, so that none always follows the same one.
  """
  names = list(parts)
  times = {name: [] for name in names}
  for repeat in range(repeats + 1):
    first = repeat % len(names)
    for name in names[first:] + names[:first]:
      seconds = parts[name]()
      if repeat:
        times[name].append(seconds)
  return times


def medians(times: dict[str, list[float]]) -> dict[str, float]:
  return {name: statistics.median(seconds) for name, seconds in times.items()}


def seconds_of(function: Callable, *arguments) -> float:
  """Seconds until the arrays that the function returns are there."""
  begin = time.perf_counter()
  jax.block_until_ready(function(*arguments))
  return time.perf_counter() - begin
