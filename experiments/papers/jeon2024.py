"""Jeon, Gagrani, Goel, Park, Lee, Lott, recursive speculative decoding (RSD)."""

import functools

from experiments.papers import rounds, toys
from experiments.papers.claim import derived, Paper
from specjax import verify
from specjax.exact import drafts

_ROWS = (
    ("AB", toys.AB, 2, 1.0), ("P3", toys.P3, 2, 7 / 8), ("R3", toys.R3, 2, 0.82),
    ("(3/4, 1/4), (1/4, 3/4)", toys.SWAPPED, 2, 1.0), ("uniform on 2 of 4", toys.HALF, 2, 5 / 6),
    ("uniform on 2 of 4", toys.HALF, 4, 1.0))


def _claims():
  for name, laws, number, value in _ROWS:
    yield derived("recursive rejection", f"acceptance, {number} drafts without replacement, "
                  f"pair {name}", value,
                  functools.partial(toys.hit, verify.recursive, laws, number, toys.WITHOUT))
  tree = drafts.tree((2, 2), toys.WITHOUT)
  yield derived("losslessness", "TV of text and target, 2x2 trees without replacement, P3 and S3",
                (0, 0), lambda: [rounds.judged(verify.recursive, tree, laws)[0]
                                 for laws in (toys.P3, toys.S3)])


PAPER = Paper(
    name="jeon2024", title="Recursive Speculative Decoding, arXiv 2402.14160",
    claims=tuple(_claims()))
