"""Stern, Shazeer, Uszkoreit, blockwise parallel decoding: greedy verification."""

from experiments.papers import rounds, toys
from experiments.papers.claim import derived, Paper
from specjax import verify

PAPER = Paper(
    name="stern2018",
    title="Blockwise Parallel Decoding for Deep Autoregressive Models, NeurIPS 2018, "
          "arXiv 1811.03115",
    claims=(
        derived("section 3", "TV of text and target if the target is a point mass, gamma = 3", 0.0,
                lambda: rounds.chain_tv(verify.greedy, toys.POINT, 3)),
        derived("section 3", "E[tau] there if q(argmax) = 0.6: 0.6 + 0.6^2 + 0.6^3", 1.176,
                lambda: rounds.chain_tau(verify.greedy, toys.POINT, 3))))
