"""Daliri, Musco, Suresh, drafter-invariant speculative decoding by shared Gumbel noise."""

import functools

import numpy as np

from experiments.papers import draws, toys
from experiments.papers.claim import derived, Paper, SIMULATED
from specjax import theory, verify
from specjax.exact import coupling

_TIGHT = ((1 / 2, 1 / 2, 0), (1 / 2, 0, 1 / 2))
_N = 400_000  # 3 sigma of a probability near 2/3: 0.0023
_VALUES = (("P3", toys.P3, 2 / 3), ("R3", toys.R3, 41 / 65), ("AB", toys.AB, 2 / 3))


def _most_below(bound) -> float:
  """How far acceptance falls below a bound, over 100 random pairs; 0 if it never does."""
  pairs = np.random.default_rng(0).dirichlet(np.ones(4), (100, 2))
  return max(0.0, *(toys.closed(bound, laws) - toys.gumbel(laws) for laws in pairs))


def _acceptance():
  place = "Gumbel sampling"
  for name, laws, value in _VALUES:
    yield derived(place, f"acceptance at one position, pair {name}", value,
                  functools.partial(toys.gumbel, laws))
    yield derived(place, f"acceptance at one position, drawn through the rule, pair {name}", value,
                  functools.partial(draws.coupled, verify.gumbel, laws, 1, _N), 0.0024,
                  kind=SIMULATED, note=f"n = {_N}, 3 sigma")
  yield derived(place, "E[tau] of pairs AB and P3, gamma = 2", (10 / 9, 10 / 9), lambda: [
      theory.expected_tokens(toys.gumbel(laws), 2) - 1 for laws in (toys.AB, toys.P3)])
  yield derived(place, "acceptance without sharing noise, pair P3: sum p q", 0.33,
                lambda: toys.hit(verify.match, toys.P3, 1))
  yield derived("weighted MinHash", "acceptance at one position, pairs P3 and R3",
                (42 / 65, 41 / 65), lambda: [
                    toys.closed(coupling.minhash_acceptance, laws) for laws in (toys.P3, toys.R3)])


def _bounds():
  yield derived("guarantee", "(1 - TV) / (1 + TV), pair P3", 7 / 13,
                lambda: toys.closed(coupling.guarantee, toys.P3))
  yield derived("guarantee", "how far acceptance falls below it, 100 random pairs", 0.0,
                lambda: _most_below(coupling.guarantee))
  yield derived("guarantee", "acceptance where it is tight: (1/2, 1/2, 0) and (1/2, 0, 1/2)", 1 / 3,
                lambda: toys.gumbel(_TIGHT))
  yield derived("weighted MinHash", "how far Gumbel falls below it, 100 random pairs", 0.0,
                lambda: _most_below(coupling.minhash_acceptance))
  yield derived("drafter invariance", f"emitted tokens of {_N} that another drafter changes", 0,
                functools.partial(draws.changed_by_drafter, verify.gumbel, toys.R3, _N), 0,
                kind=SIMULATED)


PAPER = Paper(
    name="daliri2024",
    title="Coupling without Communication and Drafter-Invariant Speculative Decoding, "
          "arXiv 2408.07978",
    claims=(*_acceptance(), *_bounds()))
