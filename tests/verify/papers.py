"""Rules that judge from the end, written down a second time as the papers print them, and mutated.

Each takes a `toys.Case` and returns the law float64[N + 1, V] of the round: P(the walk stops at
the row, the extra token). Chains are full (no invalid node). Keyword arguments
select published mistakes.
"""

import numpy as np


def positive(x):
  return np.maximum(x, 0)


def normalised(x, otherwise):
  return x / x.sum() if x.sum() > 0 else otherwise


def stops_from_the_end(h, residuals):
  """The law of a chain that is tried at its end first: h float[g + 1] with h[0] = 1."""
  out, reached = np.zeros_like(residuals), 1.
  for row in range(len(h) - 1, -1, -1):
    out[row] = reached * h[row] * residuals[row]
    reached *= 1 - h[row]
  return out


def block(case, clip="product", residual="weighted", accept="block", order="from the end"):
  """Block verification (Sun et al. 2025, algorithm 2)."""
  gamma, vocab = case.q.shape
  w = [1.]
  for i, x in enumerate(case.tokens):
    ratio = case.p[i, x] / case.q[i, x]
    w.append({"product": min(1, w[-1] * ratio), "factors": w[-1] * min(1, ratio),
              "none": w[-1] * ratio}[clip])
  h, residuals = np.ones(gamma + 1), case.p.copy()
  for i in range(gamma + 1):
    if i < gamma:
      weight = w[i] if residual == "weighted" else 1.
      z = positive(w[i] * case.p[i] - case.q[i]).sum()
      h[i] = z / (z + (1 - w[i])) if z + (1 - w[i]) > 0 else 1.
      residuals[i] = normalised(positive(weight * case.p[i] - case.q[i]), case.p[i])
    else:
      h[i] = min(1, w[i])
  if accept == "token":
    h[1:] = [min(1, case.p[i, x] / case.q[i, x]) for i, x in enumerate(case.tokens)]
  h[0] = 1
  if order == "from the end":
    return stops_from_the_end(np.clip(h, 0, 1), residuals)
  stop = np.cumprod(h) * np.append(1 - h[1:], 1)  # the first failure ends the round
  return stop[:, None] * residuals


def hierarchical(case, last="capped"):
  """HSD (Zhou et al. 2026, algorithm 2); `last="joint"` is its released code."""
  gamma = len(case.tokens)
  ratios = np.array([case.p[i, x] / case.q[i, x] for i, x in enumerate(case.tokens)])
  joint = np.append(1., np.cumprod(ratios))

  def capped(prefix, after):
    """r* of a text of `prefix` drafted tokens (and one more, of ratio float[...]), uncut."""
    best = int(np.argmax(joint[:prefix + 1]))
    best = best if joint[best] > 1 else 0
    return min(joint[best], 1) * np.prod(ratios[best:prefix]) * after

  h, residuals = np.ones(gamma + 1), case.p.copy()
  for t in range(gamma):
    drafted = case.q[t] > 0
    r = capped(t, np.where(drafted, case.p[t] / np.where(drafted, case.q[t], 1), 0))
    # q r where q is positive; where it is not, all of the target's mass is in excess.
    mass = np.where(drafted, case.q[t] * r, capped(t, 1.) * case.p[t])
    excess, lack = positive(mass - case.q[t]), positive(case.q[t] - mass)
    h[t] = excess.sum() / lack.sum() if lack.sum() > 1e-14 else 1.
    residuals[t] = normalised(excess, case.p[t])
  h[gamma] = min(1, joint[gamma] if last == "joint" else capped(gamma - 1, ratios[-1]))
  h[0] = 1
  return stops_from_the_end(np.clip(h, 0, 1), residuals)


def bv_update(w, z, _):
  return z / (z + (1 - w)) if z > 0 else 0.


UPDATES = {  # of a parent's weight, given it, the residual's mass and q of the rejected token
    "block": bv_update,
    "divided by 1 - q(x)": lambda w, z, q_x: min(1, z / (1 - q_x)) if q_x < 1 else 0.,
    "unchanged": lambda w, z, _: w,
    "mass": lambda w, z, _: z,
}


def traversal(case, update="block"):
  """Traversal verification (Weng et al. 2025, section 3): remove leaves until one is accepted."""
  left = {n for n in range(len(case.tokens)) if case.valid[n]}
  w, laws = {0: 1.}, {row: case.p[row].copy() for row in range(len(case.p))}
  children = lambda row: [n for n in sorted(left) if case.parents[n] == row - 1]

  def weigh(row):
    for n in children(row):
      x = case.tokens[n]
      w[n + 1] = min(1, w[row] * laws[row][x] / case.q[n, x]) if laws[row][x] > 0 else 0.
      weigh(n + 1)

  weigh(0)
  out, reached = np.zeros_like(case.p), 1.
  while True:
    row = 0
    while children(row):
      row = children(row)[0] + 1
    accept = 1. if row == 0 else w[row]
    out[row] = reached * accept * laws[row]
    reached *= 1 - accept
    if row == 0:
      return out
    leaf, parent = row - 1, case.parents[row - 1] + 1
    left.remove(leaf)
    residual = positive(w[parent] * laws[parent] - case.q[leaf])
    w[parent] = UPDATES[update](w[parent], residual.sum(), case.q[leaf, case.tokens[leaf]])
    laws[parent] = normalised(residual, laws[parent])
    weigh(parent)


def multipath(case, number, ties="by id"):
  """Greedy multi-path block verification (Thomas and Pal 2026) of `number` chains, one by one.

  `ties="first"` is the mistake of picking the first drafted child among equal ratios.
  """
  gamma = len(case.tokens) // number
  tokens = case.tokens.reshape(number, gamma)
  rows = lambda path: [0] + [path * gamma + step + 1 for step in range(gamma)]

  def ratio(row, node):
    q = case.q[node]
    return np.where(q > 0, case.p[row] / np.where(q > 0, q, 1), np.inf)

  standing = list(range(number))
  for step in range(gamma):
    path = standing[0]
    r = ratio(rows(path)[step], path * gamma + step)
    key = lambda k: (r[tokens[k, step]], tokens[k, step] if ties == "by id" else -standing.index(k))
    best = max(standing, key=key)
    standing = [k for k in standing if tokens[k, step] == tokens[best, step]]
  path = standing[0]

  below, x, w = 0., 1., 1.
  h, residuals, at = [1.], [], rows(path)
  for step in range(gamma):
    p, node = case.p[at[step]], path * gamma + step
    q, r = case.q[node], ratio(at[step], node)
    order = sorted(range(len(p)), key=lambda v: (r[v], v))
    y = np.zeros(len(p))
    y[order] = np.append(0, np.cumsum(x * q[order])[:-1])
    picked = ((below + y + x * q) ** number - (below + y) ** number) / (
        (below + x) ** number - below**number)
    z = positive(w * p - picked)
    h[-1] = 1. if step == 0 else (z.sum() / (z.sum() + (1 - w)) if z.sum() + (1 - w) > 0 else 1.)
    residuals.append(normalised(z, p))
    token = tokens[path, step]
    w = min(1, w * p[token] / picked[token]) if p[token] > 0 else 0.
    h.append(w)
    below, x = below + y[token], x * q[token]
  residuals.append(case.p[at[gamma]])
  out = np.zeros_like(case.p)
  out[at] = stops_from_the_end(np.array(h), np.array(residuals))
  return out
