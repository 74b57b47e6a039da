"""Timor, Mamou, Korat, Berchansky, Jain, Pereg, Wasserblat, Harel, heterogeneous vocabularies."""

import numpy as np

from experiments.papers import toys
from experiments.papers.claim import derived, Paper
from specjax import verify

# Tokens a, b, c, d: the target knows a, b, c, the drafter b, c, d.
_P, _RAW = (0.5, 0.3, 0.2, 0.0), (0.0, 0.2, 0.1, 0.7)
_KNOWN = np.asarray(_RAW) * (np.asarray(_P) > 0)
_SHARED = tuple((_KNOWN / _KNOWN.sum()).tolist())
_AT = "target (.5, .3, .2) on a, b, c, drafter (.2, .1, .7) on b, c, d"

PAPER = Paper(
    name="timor2025",
    title="Lossless Speculative Decoding Algorithms for Heterogeneous Vocabularies, ICML 2025, "
          "arXiv 2502.05202",
    claims=(
        derived("algorithm 1", f"acceptance of the drafter's own law, {_AT}", 0.3,
                lambda: toys.hit(verify.token, (_P, _RAW), 1)),
        derived("algorithm 4 (TLI)", f"acceptance of its law on the shared tokens, {_AT}", 0.5,
                lambda: toys.hit(verify.token, (_P, _SHARED), 1)),
        derived("algorithm 4 (TLI)", "law of the token", _P,
                lambda: toys.output(verify.token, (_P, _SHARED)))))
