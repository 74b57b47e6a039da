"""A published number, and how this project arrives at it.

A claim carries a function, never our number: what is compared comes out of specjax at every run.
"""

from typing import Any, Callable, NamedTuple

import numpy as np

from specjax.types import Error

# How our value comes about.
EXACT = "exact"  # a formula or an enumeration; no randomness
SIMULATED = "simulated"  # random draws through the real rule; `ours` takes the seed
MEASURED = "measured here"  # counted on a run of the decoder; `ours` takes the seed
WEIGHTS = "needs weights"  # large models or their data; the command says how to run it

# What the published value is.
PRINTED = "printed"  # the paper states it
QUOTED = "quoted"  # another text quotes it from the paper
UNCHECKED = "unchecked"  # the paper's, but not compared with its text
DERIVED = "derived"  # follows from the paper's formula or algorithm, worked out independently
ARITHMETIC = "arithmetic"  # no source; plain arithmetic on the numbers named in `quantity`
ORIGINS = (PRINTED, QUOTED, UNCHECKED, DERIVED, ARITHMETIC)

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
DIRECTION_ONLY = "direction only"
NEEDS_WEIGHTS = "needs weights"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, DIRECTION_ONLY, NEEDS_WEIGHTS)

ROUNDING = 1e-12  # of a value in float64 that equals a fraction


class Claim(NamedTuple):
  """One number, or a tuple of numbers, of one paper.

  `direction` says that only the signs of value and ours are comparable (a gain on large models, and
  the same gain on small tables); agreement is then `direction only`, never `reproduced`.
  """

  place: str
  quantity: str
  value: Any
  ours: Callable | None
  tolerance: float = ROUNDING
  kind: str = EXACT
  origin: str = PRINTED
  direction: bool = False
  note: str = ""
  command: str = ""


def derived(place: str, quantity: str, value, ours: Callable, tolerance=ROUNDING, **more) -> Claim:
  """A claim whose value follows from the paper's formula or algorithm."""
  return Claim(place, quantity, value, ours, tolerance, origin=DERIVED, **more)


def needs_weights(place: str, quantity: str, value, command: str, origin=PRINTED) -> Claim:
  """A number of large models; nothing is computed and nothing counts as reproduced."""
  return Claim(place, quantity, value, None, kind=WEIGHTS, origin=origin, command=command)


class Contradiction(NamedTuple):
  """Where a paper disagrees with itself, with its theorem or with another paper."""

  statement: str
  finding: Callable[[], str]  # a sentence with our number in it


class Paper(NamedTuple):
  """The claims of one source."""

  name: str
  title: str
  claims: tuple[Claim, ...]
  contradictions: tuple[Contradiction, ...] = ()


class Row(NamedTuple):
  """A claim with its outcome, as it stands in the report."""

  paper: str
  place: str
  quantity: str
  value: Any
  ours: Any
  difference: float | None
  tolerance: float
  kind: str
  verdict: str
  origin: str
  note: str
  command: str


def check(paper: str, claim: Claim, command: str, seed: int) -> Row:
  """Computes our value of a claim and judges it; `command` is the default one."""
  ours = None if claim.kind == WEIGHTS else _compute(claim, seed)
  verdict, difference = _judge(claim, ours)
  return Row(
      paper=paper, place=claim.place, quantity=claim.quantity, value=claim.value, ours=ours,
      difference=difference, tolerance=claim.tolerance, kind=claim.kind, verdict=verdict,
      origin=claim.origin, note=claim.note, command=claim.command or command)


def _compute(claim: Claim, seed: int):
  ours = claim.ours(seed) if claim.kind in (SIMULATED, MEASURED) else claim.ours()
  ours = np.asarray(ours, np.float64)
  return ours.item() if ours.ndim == 0 else tuple(ours.tolist())


def _judge(claim: Claim, ours) -> tuple[str, float | None]:
  """The verdict, and the largest difference between the published value and ours."""
  if claim.kind == WEIGHTS:
    return NEEDS_WEIGHTS, None
  value, ours = np.asarray(claim.value, np.float64), np.asarray(ours)
  if value.shape != ours.shape:
    raise Error(
        f"claim {claim.quantity!r} compares {value.shape} with {ours.shape} numbers of ours.")
  difference = float(np.abs(ours - value).max())
  if claim.direction:
    same = (np.sign(ours) == np.sign(value)).all()
    return (DIRECTION_ONLY if same else NOT_REPRODUCED), difference
  agrees = difference <= claim.tolerance  # false for NaN
  return (REPRODUCED if agrees else NOT_REPRODUCED), difference
