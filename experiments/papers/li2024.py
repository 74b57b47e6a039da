"""Li, Wei, Zhang, Zhang, EAGLE: trees of the drafter's most likely tokens."""

import numpy as np

from experiments.papers import toys, weights
from experiments.papers.claim import derived, needs_weights, Paper, UNCHECKED
from specjax import verify

_MEASURED = (
    ("EAGLE", 3.0), ("EAGLE-2, from and to", (3.05, 4.26)), ("EAGLE-3, Vicuna-13B", 5.6))


def _likeliest_two():
  """P(one of the two likeliest tokens of q is emitted), by two rules for point masses."""
  return [toys.hit_by(rule, tuple(np.argsort(laws[1])[:-3:-1].tolist()), laws[0])
          for rule in (verify.match, verify.recursive) for laws in (toys.P3, toys.R3)]


def _claims():
  yield derived("verification of drafted trees", "acceptance p(S) of the two likeliest tokens as "
                "point masses, P3 and R3, by matching and by recursive rejection",
                (0.70, 0.50, 0.70, 0.50), _likeliest_two)
  command = weights.sweep("TARGET", "EAGLE_CHECKPOINT", "match", 5, 0, "MT_BENCH.jsonl")
  for method, speeds in _MEASURED:
    yield needs_weights("experiments", f"speed of {method}", speeds, command, UNCHECKED)


PAPER = Paper(
    name="li2024", title="EAGLE, EAGLE-2, EAGLE-3, arXiv 2401.15077, 2406.16858, 2503.01840",
    claims=tuple(_claims()))
