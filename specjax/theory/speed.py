"""How many tokens a target pass gives, and what that is worth.

Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", ICML 2023,
arXiv 2211.17192, section 3. Symbols are the paper's: alpha is the probability that a drafted token
is accepted (independent between positions), gamma the drafted tokens of a round, c the time of one
draft step divided by that of one target pass. Every argument may be a number or an array, and
arrays broadcast.
"""

import numpy as np

from specjax.theory import inputs

_BISECTIONS = 60  # halves [0, 1] down to below the spacing of float64 numbers near 1


def expected_tokens(alpha, gamma):
  """Tokens per target pass, the extra token counted: (1 - alpha^(gamma + 1)) / (1 - alpha).

  Equation (1) of the paper. gamma + 1 at alpha = 1; accurate for alpha close to 1 as well.

  Raises:
    ValueError: alpha outside [0, 1] or gamma < 0.
  """
  xp, (alpha, gamma) = inputs.read(alpha=alpha, gamma=gamma)
  # Near 1 both sides of the fraction cancel, so 1 - alpha^(gamma + 1) is taken by expm1 there, and
  # at 1 itself the first two terms of its series give the value and the slope. The inner `where`s
  # keep the unused branches finite, gradients included.
  certain, high = alpha >= 1, alpha > 0.5
  near = xp.where(high & ~certain, alpha, 0.75)
  small = xp.where(high, 0.25, alpha)
  return xp.where(
      certain, (gamma + 1) * (1 + gamma * (alpha - 1) / 2),
      xp.where(high, -xp.expm1((gamma + 1) * xp.log1p(near - 1)) / (1 - near),
               (1 - small ** (gamma + 1)) / (1 - small)))


def predicted_speedup(tau, gamma, c, window_cost=1.0):
  """Speed relative to plain decoding from measured parts: tau / (V(gamma + 1) + gamma c).

  Args:
    tau: tokens per target pass, the extra token counted, however they came about.
    gamma: drafting steps of a round (the depth of the tree, for trees).
    c: one drafting step / one single-row target pass, in time.
    window_cost: V(gamma + 1), the pass that scores the draft / one single-row target pass. 1 is the
      usual assumption that the extra rows are free; `roofline` says up to where it can hold.
      Sequoia's t(n) (arXiv 2402.12374, section 3.3) is the same quantity.

  Raises:
    ValueError: a negative argument.
  """
  _, (tau, gamma, c, window_cost) = inputs.read(
      tau=tau, gamma=gamma, c=c, window_cost=window_cost)
  return tau / (window_cost + gamma * c)


def speedup(alpha, gamma, c):
  """Expected walltime improvement (theorem 3.8): expected_tokens(alpha, gamma) / (gamma c + 1).

  Raises:
    ValueError: alpha outside [0, 1], gamma < 0 or c < 0.
  """
  return predicted_speedup(expected_tokens(alpha, gamma), gamma, c)


def operation_factor(alpha, gamma, c_hat):
  """Factor by which the arithmetic grows (theorem 3.11): (gamma c_hat + gamma + 1) / tokens.

  Args:
    alpha: acceptance probability.
    gamma: drafted tokens.
    c_hat: operations of one draft step / operations of the target for one token.

  Raises:
    ValueError: alpha outside [0, 1], gamma < 0 or c_hat < 0.
  """
  tokens = expected_tokens(alpha, gamma)
  _, (gamma, c_hat) = inputs.read(gamma=gamma, c_hat=c_hat)
  return (gamma * c_hat + gamma + 1) / tokens


def optimal_gamma(alpha, c, max_gamma=512):
  """The gamma in 0 .. max_gamma of the largest `speedup`, the smallest among ties; integers.

  0 means that plain decoding is fastest, which is the case iff alpha <= c (corollary 3.9). The gain
  has a single peak in gamma (a concave number of tokens over a linear cost), so the answer is the
  number of steps that still climb. With alpha = 1 > c or with c = 0 every step does, and the answer
  is max_gamma as long as alpha^max_gamma is not rounded to 0.

  Raises:
    ValueError: alpha outside [0, 1] or c < 0.
  """
  xp, (alpha, c) = inputs.read(alpha=alpha, c=c)
  alpha, c = xp.broadcast_arrays(alpha, c)
  step = xp.arange(max_gamma).reshape((max_gamma,) + (1,) * alpha.ndim).astype(alpha.dtype)
  tokens = expected_tokens(xp.broadcast_to(alpha[None], (max_gamma,) + alpha.shape), step)
  # speedup(g + 1) > speedup(g), cross-multiplied; token g + 1 is worth alpha^(g + 1).
  climbs = alpha[None] ** (step + 1) * (step * c[None] + 1) > c[None] * tokens
  return climbs.sum(0)


def break_even_alpha(gamma, c, window_cost=1.0):
  """The alpha from which speculation pays: speed 1 in `predicted_speedup`; NaN if no alpha does.

  For gamma = 1 and free extra rows this is c itself (corollary 3.9). Host numbers only.

  Raises:
    ValueError: a negative argument.
  """
  _, (gamma, c, window_cost) = inputs.read(gamma=gamma, c=c, window_cost=window_cost)
  gamma, c, window_cost = (np.asarray(value) for value in (gamma, c, window_cost))
  needed = window_cost + gamma * c
  low, high = np.zeros(needed.shape), np.ones(needed.shape)
  for _ in range(_BISECTIONS):
    middle = (low + high) / 2
    pays = expected_tokens(middle, gamma) >= needed
    low, high = np.where(pays, low, middle), np.where(pays, middle, high)
  never = needed > gamma + 1
  return np.where(never, np.nan, np.where(needed <= 1, 0.0, high))
