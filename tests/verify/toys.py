"""Random drafts over random trees, and rules written down a second time, as loops over floats."""

import functools
import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from specjax.exact import law, systems
from specjax.types import Draft, PAD, ROOT

AB, P3 = systems.PAIRS["AB"], systems.PAIRS["P3"]


class Case(NamedTuple):
  """A draft and the target's laws, as probabilities in float64."""

  tokens: np.ndarray  # int32[N]
  parents: np.ndarray  # int32[N]
  q: np.ndarray | None  # float64[N, V]
  valid: np.ndarray  # bool[N]
  p: np.ndarray  # float64[N + 1, V]

  @property
  def draft(self) -> Draft:
    log_q = None if self.q is None else jnp.asarray(log(self.q))
    tokens, parents, valid = map(jnp.asarray, (self.tokens, self.parents, self.valid))
    return Draft(tokens, parents, log_q, valid)

  @property
  def log_p(self):
    return jnp.asarray(log(self.p))


def log(x):
  with np.errstate(divide="ignore"):
    return np.log(x)


def case(tokens, p, q=None, parents=None, valid=None) -> Case:
  """A chain unless parents are given; a law float[V] holds in every row."""
  nodes = len(tokens)
  rows = lambda law, count: None if law is None else np.broadcast_to(
      np.asarray(law, np.float64), (count, np.shape(law)[-1])).copy()
  return Case(
      np.asarray(tokens, np.int32),
      np.asarray(np.arange(-1, nodes - 1) if parents is None else parents, np.int32),
      rows(q, nodes),
      np.ones(nodes, bool) if valid is None else np.asarray(valid, bool),
      rows(p, nodes + 1))


def laws(rng, rows: int, vocab: int, even: bool = False) -> np.ndarray:
  """float64[rows, V]: flat, sharp, and with excluded tokens, in turn; no token rare if `even`."""
  if even:
    return rng.dirichlet(np.full(vocab, 5.), rows)
  made = rng.dirichlet(np.ones(vocab), rows)
  made[1::3] = made[1::3] ** 6
  holes = rng.random((rows, vocab)) < .4
  holes[np.arange(rows), rng.integers(vocab, size=rows)] = False
  made[2::3] *= ~holes[2::3]
  return made / made.sum(-1, keepdims=True)


def tree(rng, nodes: int, chain: bool = False) -> np.ndarray:
  """Parents int32[N] of a random tree; any order that has parents first."""
  if chain:
    return np.arange(-1, nodes - 1, dtype=np.int32)
  return np.array([rng.integers(-1, node) for node in range(nodes)], np.int32)


def random_cases(
    seed: int, number: int, nodes: int, vocab: int, kind: str, even: bool = False) -> list[Case]:
  """Drafts of one kind over random trees, some nodes invalid, tokens drawn from what is recorded.

  Kinds: "chain"; "one law" (all siblings record one q); "any laws" (each sibling its own);
  "without replacement"; "point masses" (q is None). Duplicates occur in all but one of them.
  """
  rng = np.random.default_rng(seed)
  return [_random_case(rng, nodes, vocab, kind, even) for _ in range(number)]


def _random_case(rng, nodes, vocab, kind, even):
  parents = tree(rng, nodes, kind == "chain")
  p, below, own = (laws(rng, rows, vocab, even) for rows in (nodes + 1, nodes + 1, nodes))
  valid, tokens, q = rng.random(nodes) < .85, np.full(nodes, PAD, np.int32), np.empty_like(own)
  for node, parent in enumerate(parents):
    valid[node] &= parent == ROOT or valid[parent]
    q[node] = own[node] if kind == "any laws" else below[parent + 1]
    if kind == "without replacement":
      q[node][[tokens[m] for m in range(node) if parents[m] == parent and valid[m]]] = 0
      valid[node] &= q[node].sum() > 0
    if valid[node]:
      q[node] /= q[node].sum()
      tokens[node] = rng.choice(vocab, p=q[node])
    else:
      q[node] = np.nan  # no rule may look at it
  return Case(tokens, parents, None if kind == "point masses" else q, valid, p)


def laws_of(rule, cases) -> np.ndarray:
  """exact.law of all cases float64[C, N + 1, V] in one compiled call: the trees are traced."""
  with jax.enable_x64(True):
    return np.asarray(_laws(rule, *stack(cases)))


def stack(cases):
  """The drafts and laws of all cases with a leading axis."""
  return jax.tree.map(lambda *x: jnp.stack(x), *((c.draft, c.log_p) for c in cases))


# Compiling takes most of the time, and the numbers do not depend on how well it is done.
@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def _laws(rule, drafts, log_p):
  return jax.vmap(lambda draft, log_p: law(rule, draft, log_p))(drafts, log_p)


def expected_law(case: Case, trial) -> np.ndarray:
  """float64[N + 1, V]: the law of a round whose rule is told node by node.

  Args:
    case: the draft.
    trial: (p float[V], [(token, q)]) -> the probability of ending at each child, and the mass
      float[V] of the extra token, which sums to the probability of ending at none.
  """
  out = np.zeros_like(case.p)

  def walk(row, reached):
    children = [n for n in range(len(case.tokens)) if case.parents[n] == row - 1 and case.valid[n]]
    q = [np.eye(case.p.shape[1])[case.tokens[n]] if case.q is None else case.q[n] for n in children]
    ends, rest = trial(case.p[row], [(case.tokens[n], law_) for n, law_ in zip(children, q)])
    out[row] = reached * rest
    for child, end in zip(children, ends):
      walk(child + 1, reached * end)

  walk(0, 1.)
  return out


def try_in_turn(p, children):
  """Recursive rejection as the papers print it: accept against R, or R = norm([R - q]+)."""
  left, rest, ends = 1., p, []
  for token, q in children:
    accept = min(1, rest[token] / q[token]) if rest[token] > 0 else 0.
    ends.append(left * accept)
    left *= 1 - accept
    excess = np.maximum(rest - q, 0)
    rest = excess / excess.sum() if excess.sum() > 0 else rest
  return ends, left * rest


def try_in_random_order(p, children):
  """The mean of `try_in_turn` over all orders of the children."""
  orders = list(itertools.permutations(range(len(children))))
  ends, rest = np.zeros(len(children)), np.zeros_like(p)
  for order in orders:
    some_ends, some_rest = try_in_turn(p, [children[i] for i in order])
    ends[list(order)] += np.array(some_ends) / len(orders)
    rest += some_rest / len(orders)
  return ends, rest


def sample_and_match(p, children):
  """Y ~ p ends at the first child that is Y."""
  ends, rest = [], p.copy()
  for token, _ in children:
    ends.append(rest[token])
    rest[token] = 0
  return ends, rest


def try_against_scaled(p, children):
  """K-SEQ with rho* from a plain bisection of A(rho) = rho b(rho) over 200 steps."""
  if not children:
    return [], p
  k, q = len(children), children[0][1]
  low, high = 1., float(k)
  once = lambda rho: np.minimum(p / rho, q).sum()
  for _ in range(200):
    rho = (low + high) / 2
    low, high = (low, rho) if rho * once(rho) >= 1 - (1 - once(rho)) ** k else (rho, high)
  b = once(high)
  some = 1 - (1 - b) ** k
  accept = [min(1, p[token] / (high * q[token])) for token, _ in children]
  left = [math.prod(1 - a for a in accept[:i]) for i in range(k + 1)]
  rest = p - np.minimum(p / high, q) * (some / b if b > 0 else 0)
  rest = np.maximum(rest, 0)
  rest = rest / rest.sum() if rest.sum() > 0 else p
  return [left[i] * accept[i] for i in range(k)], left[k] * rest
