"""Lenience: more acceptance for a bounded departure from the target's law.

Leviathan, Kalman, Matias, ICML 2023, arXiv 2211.17192, appendix A.5: the draft law enters the
acceptance test multiplied by a factor l in (0, 1]; l = 1 is lossless.
"""

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
  xp, (p, q, factor) = inputs.read(p=p, q=q, factor=factor)
  return xp.minimum(p / factor, q).sum(-1)


def lenient_bound(p, factor):
  """The most that any token's probability can become: min(1, p(x) / l), float[..., V].

  Raises:
    ValueError: a factor outside (0, 1] or an entry that is no probability.
  """
  xp, (p, factor) = inputs.read(p=p, factor=factor)
  return xp.minimum(p / factor, 1)
