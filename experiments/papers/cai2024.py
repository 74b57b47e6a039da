"""Cai, Li, Geng, Peng, Lee, Chen, Dao, Medusa: typical acceptance."""

import numpy as np

from experiments.papers import toys
from experiments.papers.claim import derived, Paper
from specjax import verify

_SHARP = ((0.9, 0.06, 0.04), (0.5, 0.3, 0.2))
_PLACE = "typical acceptance"


def _tv(laws):
  return np.abs(toys.output(verify.typical, laws) - np.asarray(laws[0])).sum() / 2


PAPER = Paper(
    name="cai2024", title="Medusa, ICML 2024, arXiv 2401.10774",
    claims=(
        derived(_PLACE, "law of the token where every draft passes (P3): the drafter's", toys.P3[1],
                lambda: toys.output(verify.typical, toys.P3)),
        derived(_PLACE, "total variation of that law from the target's", 0.3, lambda: _tv(toys.P3)),
        derived(_PLACE, "law of the token, p = (.9, .06, .04), q = (.5, .3, .2)", (1, 0, 0),
                lambda: toys.output(verify.typical, _SHARP)),
        derived(_PLACE, "total variation of the second law from the target's", 0.1,
                lambda: _tv(_SHARP))))
