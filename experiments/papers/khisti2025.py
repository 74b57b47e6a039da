"""Khisti, Ebrahimi, Dbouk, Behboodi, Memisevic, Louizos, multi-draft speculative sampling."""

from experiments.papers import toys
from experiments.papers.claim import derived, Paper
from specjax.exact import bounds


def _optimum(p):
  return toys.closed(bounds.transport, (p, (1 / 2, 1 / 2)), 2)


PAPER = Paper(
    name="khisti2025",
    title="Multi-Draft Speculative Sampling: Canonical Decomposition and Theoretical Limits, "
          "ICLR 2025, arXiv 2410.18234",
    claims=(
        derived("two drafts", "optimum on the edge p(S) = q(S)^2: p = (1/4, 3/4), q uniform", 1.0,
                lambda: _optimum((1 / 4, 3 / 4))),
        derived("two drafts", "optimum beyond that edge: p = (1/5, 4/5), q uniform", 19 / 20,
                lambda: _optimum((1 / 5, 4 / 5))),
        derived("two drafts", "optimum, pairs AB, P3, R3", (8 / 9, 0.89, 0.86),
                lambda: [toys.closed(bounds.transport, laws, 2)
                         for laws in (toys.AB, toys.P3, toys.R3)])))
