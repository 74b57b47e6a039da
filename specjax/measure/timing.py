"""Times of things that are compared: in turn, so that all of them see the same machine."""

import statistics
import time
from typing import Any, Callable, Hashable

import jax


def in_turn(
    parts: dict[Hashable, Callable[[], float]], repeats: int) -> dict[Hashable, list[float]]:
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


def medians(times: dict[Hashable, list[float]]) -> dict[Hashable, float]:
  return {name: statistics.median(seconds) for name, seconds in times.items()}


def timed(function: Callable, *arguments) -> tuple[Any, float]:
  """What the function returns, and the seconds until its arrays are there."""
  begin = time.perf_counter()
  result = jax.block_until_ready(function(*arguments))
  return result, time.perf_counter() - begin


def seconds_of(function: Callable, *arguments) -> float:
  """The seconds of `timed`."""
  return timed(function, *arguments)[1]
