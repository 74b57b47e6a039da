"""Hu, Zheng, Viswanathan, Chen, Rossi, Wu, Manocha, Huang, optimal multi-draft acceptance."""

import itertools

import numpy as np

from experiments.papers import toys
from experiments.papers.claim import derived, Paper
from specjax.exact import bounds

_CASES, _VOCAB = 60, 5  # 60 pairs of laws, each with 2, 3, 4 drafts and with 2 without replacement


def _missed_by_prefixes():
  """In how many of the 240 cases some set of tokens beats every prefix sorted by p / q."""
  sets = [np.array(members) for members in itertools.product([False, True], repeat=_VOCAB)]
  missed = 0
  for p, q in np.random.default_rng(0).dirichlet(np.ones(_VOCAB), (_CASES, 2)):
    for k in (2, 3, 4):
      best = min(1 + p[s].sum() - q[s].sum() ** k for s in sets)
      missed += abs(best - toys.closed(bounds.transport, (p, q), k)) > 1e-12
    best = min(1 + p[s].sum() - _both_inside(q, s) for s in sets)
    missed += abs(best - toys.closed(bounds.transport_without_replacement, (p, q))) > 1e-12
  return missed


def _both_inside(q, members):
  """P(two drafts without replacement lie in the set)."""
  inside = q[members].sum()
  return sum(q[x] * (inside - q[x]) / (1 - q[x]) for x in np.flatnonzero(members))


def _of_both(form, *args):
  return [toys.closed(form, laws, *args) for laws in (toys.P3, toys.R3)]


PAPER = Paper(
    name="hu2025",
    title="Towards Optimal Multi-draft Speculative Decoding, ICLR 2025, arXiv 2502.18779",
    claims=(
        derived("optimum", "independent drafts: P3 with 2, AB with 2 and 3", (0.89, 8 / 9, 1.0),
                lambda: [toys.closed(bounds.transport, laws, k)
                         for laws, k in ((toys.P3, 2), (toys.AB, 2), (toys.AB, 3))]),
        derived("optimum", "two drafts without replacement, P3 and R3", (139 / 140, 69 / 70),
                lambda: _of_both(bounds.transport_without_replacement)),
        derived("greedy draft", "acceptance with 2 drafts, P3 and R3", (0.95, 0.90),
                lambda: _of_both(bounds.greedy_draft, 2)),
        derived("structure of the optimum", "random cases of 240 where no sorted prefix attains it",
                0, _missed_by_prefixes, 0)))
