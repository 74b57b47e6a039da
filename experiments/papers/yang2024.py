"""Yang, Huang, Dai, Chen, multi-candidate speculative decoding (MCSD): recursive rejection."""

import functools

from experiments.papers import rounds, toys
from experiments.papers.claim import derived, Paper
from specjax import verify

_ROWS = (
    ("AB", toys.AB, 2, 7 / 9), ("AB", toys.AB, 3, 23 / 27), ("P3", toys.P3, 2, 41 / 50),
    ("R3", toys.R3, 2, 0.76), ("(3/4, 1/4), (1/4, 3/4)", toys.SWAPPED, 2, 5 / 8),
    ("uniform on 2 of 4", toys.HALF, 2, 3 / 4), ("uniform on 2 of 4", toys.HALF, 4, 15 / 16),
    ("(1, 0), (1/2, 1/2)", toys.SURE, 2, 3 / 4))


def _on_paths():
  return [rounds.joined_paths(verify.recursive, laws) for laws in (toys.AB, toys.P3)]


def _claims():
  for name, laws, number, value in _ROWS:
    yield derived("recursive rejection", f"acceptance, {number} independent drafts, pair {name}",
                  value, functools.partial(toys.hit, verify.recursive, laws, number))
  yield derived("recursive rejection", "E[tau] of two independent paths of two, pairs AB and P3",
                (4 / 3, 1.4276), lambda: [tau for _, tau in _on_paths()])
  yield derived("losslessness", "TV of text and target, two independent paths of two, AB and P3",
                (0, 0), lambda: [tv for tv, _ in _on_paths()])


PAPER = Paper(
    name="yang2024", title="Multi-Candidate Speculative Decoding, arXiv 2401.06706",
    claims=tuple(_claims()))
