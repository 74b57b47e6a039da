"""Lenience: more acceptance for a bounded departure from the target's law.

Leviathan, Kalman, Matias, ICML 2023, arXiv 2211.17192, appendix A.5: the draft law enters the
acceptance test multiplied by a factor l in (0, 1]; l = 1 is lossless.
"""

import numpy as np

from specjax.theory import inputs


def lenient_acceptance(p, q, factor):
  """alpha under lenience: sum_x min(p(x) / l, q(x)), over the last axis.

  Args:
    p: float[..., V], the target's law (probabilities).
    q: float[..., V], the draft law.
    factor: the lenience l in (0, 1].

  Raises:
    ValueError: a factor outside (0, 1] or an entry that is no probability.
  """
  _check_factor(factor)
  xp, (p, q) = inputs.read(p=p, q=q)
  return xp.minimum(p / factor, q).sum(-1)


def lenient_bound(p, factor):
  """The most that any token's probability can become: min(1, p(x) / l), float[..., V].

  Raises:
    ValueError: a factor outside (0, 1] or an entry that is no probability.
  """
  _check_factor(factor)
  xp, (p,) = inputs.read(p=p)
  return xp.minimum(p / factor, 1)


def _check_factor(factor):
  if not (0 < np.asarray(factor)).all() or not (np.asarray(factor) <= 1).all():
    raise ValueError(f"factor must be a lenience in (0, 1], of which 1 is lossless; got {factor}.")
