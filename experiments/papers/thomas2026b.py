"""Thomas, Kitanovski, Goldblum, Pal, a matched comparison of verification rules."""

from experiments.papers import rounds, weights
from experiments.papers.claim import Contradiction, needs_weights, Paper
from specjax import verify

_MEASURED = (  # method, our rule, block efficiency and tokens a second
    ("NSS", "match", 4.05, 11.91), ("BV", "block", 4.30, 13.36), ("Naive", "token", 4.52, 12.44),
    ("SpecInfer", "specinfer", 4.58, 13.55), ("SpecTr", "kseq", 4.61, 13.32),
    ("Traversal", "traversal", 5.31, 15.89))


def _claims():
  for method, rule, efficiency, speed in _MEASURED:
    yield needs_weights(
        "comparison", f"block efficiency and tokens a second of {method}, best K <= 4, L <= 8",
        (efficiency, speed),
        weights.sweep("LARGE_MODEL", "SMALL_MODEL", rule, 8, 1, "PROMPTS.jsonl"))


def _block_loses() -> str:
  least = rounds.least_gain(verify.block, verify.token, 3)
  return ("Block verification cannot accept less than token verification of the same drafts: over "
          f"random and degenerate systems its smallest gain in E[tau] here is {least:.1e}. The two "
          "rows cannot have judged the same drafts by these two rules.")


PAPER = Paper(
    name="thomas2026b", title="arXiv 2602.16994", claims=tuple(_claims()),
    contradictions=(
        Contradiction("Block verification (BV, 4.30) is reported below token verification (Naive, "
                      "4.52).", _block_loses),))
