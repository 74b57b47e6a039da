"""Rowan, Phan, Khisti, list-level Gumbel coupling (GLS)."""

import functools

from experiments.papers import draws, rounds, toys, weights
from experiments.papers.claim import derived, needs_weights, Paper, SIMULATED
from specjax import verify
from specjax.exact import coupling

_N = {2: 400_000, 8: 100_000}  # by paths; 3 sigma of the first simulation and ours: below 0.003
_PAIRS = (("AB", toys.AB), ("P3", toys.P3), ("R3", toys.R3))
_BOUND = {2: (0.77778, 0.77000, 0.74658), 8: (0.92593, 0.91647, 0.91021)}
_DRAWN = {2: (0.8154, 0.7931, 0.7741), 8: (0.9908, 0.9602, 0.9725)}

_MEASURED = (
    ("SpecInfer", "specinfer", (4.75, 4.54, 4.19)), ("SpecTr", "kseq", (4.78, 4.56, 4.22)),
    ("GLS", "list_gumbel", (4.78, 4.55, 4.18)), ("Daliri, one path", "gumbel", (4.16, 3.69, 3.32)),
    ("one draft", "token", (4.18, 3.75, 3.43)))


def _claims():
  for paths in (2, 8):
    for (name, laws), bound, drawn in zip(_PAIRS, _BOUND[paths], _DRAWN[paths]):
      at = f"{paths} paths, pair {name}"
      yield derived("list matching bound", f"least acceptance, {at}", bound,
                    functools.partial(toys.closed, coupling.list_gumbel_bound, laws, paths), 5e-6)
      yield derived("the rule", f"acceptance at one position, {at}", drawn,
                    functools.partial(draws.coupled, verify.list_gumbel, laws, paths, _N[paths]),
                    0.003, kind=SIMULATED, note=f"n = {_N[paths]}, 3 sigma of two simulations")
  yield derived("the rule", "E[tau] of two paths of two, pairs AB and P3", (1.416, 1.361),
                lambda: [rounds.coupled_tau(laws, 2, 2) for laws in (toys.AB, toys.P3)], 0.005,
                note="ours is exact; the value is a simulation's, 3 sigma 0.005")
  yield derived("list matching bound", "with one path it is the Gumbel acceptance, pair P3", 2 / 3,
                lambda: toys.closed(coupling.list_gumbel_bound, toys.P3, 1))
  for method, rule, values in _MEASURED:
    yield needs_weights(
        "experiments", f"block efficiency of {method}, Qwen2.5-7B with 0.5B, 8 paths of 4, GSM8K, "
        "HumanEval, NaturalReasoning", values,
        weights.sweep("QWEN2.5_7B", "QWEN2.5_0.5B", rule, 4, 1, "PROMPTS.jsonl"))


PAPER = Paper(
    name="rowan2025",
    title="List-Level Distribution Coupling with Applications to Speculative Decoding, "
          "NeurIPS 2025, arXiv 2506.05632",
    claims=tuple(_claims()))
