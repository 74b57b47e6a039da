"""Whole rounds over small systems: every draft with its probability, the text's law, E[tau].

Written in numpy and apart from `specjax.exact`, so that the two check each other. A system is a
pair of tables; a table is a list with one array float64[V^d, V] for each depth d, the law after
each text of d tokens, texts being numbered as digits in base V.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from specjax.exact import law, systems
from specjax.types import Draft
from tests.verify import toys

LOT = 256  # drafts that are judged at once

# Kinds of siblings: drawn independently; never like an earlier one; independently, then nodes of
# one text merged into the first of them.
INDEPENDENT, WITHOUT, MERGED = "independent", "without replacement", "merged"


class System(NamedTuple):
  p: list[np.ndarray]
  q: list[np.ndarray]


class Drafts(NamedTuple):
  """All drafts of one system over one tree shape."""

  tokens: np.ndarray  # int32[M, N]
  parents: np.ndarray  # int32[M, N]
  q: np.ndarray  # float64[M, N, V], the recorded laws
  valid: np.ndarray  # bool[M, N]
  p: np.ndarray  # float64[M, N + 1, V]
  weight: np.ndarray  # float64[M]
  text: np.ndarray  # int64[M, N + 1]: the number of the text at each row
  depth: np.ndarray  # int64[N + 1]


def pair(name, depth):
  """A system whose laws do not depend on the text."""
  return System(*([np.tile(law_, (len(law_) ** d, 1)) for d in range(depth + 1)]
                  for law_ in systems.PAIRS[name]))


def random(seed, number, vocab, depth):
  """Systems that depend on the whole text, some laws sharp and some with excluded tokens."""
  rng = np.random.default_rng(seed)
  table = lambda: [toys.laws(rng, vocab**d + 2, vocab)[rng.integers(3):][:vocab**d]
                   for d in range(depth + 1)]
  return [System(table(), table()) for _ in range(number)]


def degenerate(vocab, depth):
  """Named systems at the edges: equal, disjoint, point masses, ties, a law covering the other."""
  rng = np.random.default_rng(7)
  rows = [vocab**d for d in range(depth + 1)]
  some = [rng.dirichlet(np.ones(vocab), n) for n in rows]
  flat = [np.full((n, vocab), 1 / vocab) for n in rows]
  point = [np.eye(vocab)[rng.integers(vocab, size=n)] for n in rows]
  low = [np.tile(np.eye(vocab)[0], (n, 1)) for n in rows]
  high = [np.tile(np.r_[0, np.full(vocab - 1, 1 / (vocab - 1))], (n, 1)) for n in rows]
  near = [x * (1 - 1e-9) + 1e-9 / vocab for x in some]
  return dict(
      equal=System(some, some), flat=System(flat, flat), nearly_equal=System(some, near),
      disjoint=System(low, high), disjoint_back=System(high, low), point_target=System(point, some),
      point_draft=System(some, point), both_points=System(point, point),
      flat_draft=System(some, flat), flat_target=System(flat, some), covered=System(high, flat),
      covering=System(flat, high))


def drafts(system, parents, siblings=INDEPENDENT) -> Drafts:
  vocab, nodes = system.p[0].shape[1], len(parents)
  tokens = np.indices((vocab,) * nodes).reshape(nodes, -1).T.astype(np.int32)
  number = tokens.shape[0]
  text, depth = np.zeros((number, nodes + 1), np.int64), np.zeros(nodes + 1, np.int64)
  parents_of = np.tile(np.array(parents, np.int32), (number, 1))
  first = np.tile(np.arange(nodes + 1), (number, 1))  # of the rows with this text
  valid, weight = np.ones((number, nodes), bool), np.ones(number)
  q = np.zeros((number, nodes, vocab))
  for n, parent in enumerate(parents):
    above = parent + 1
    depth[n + 1] = depth[above] + 1
    text[:, n + 1] = text[:, above] * vocab + tokens[:, n]
    own = system.q[depth[above]][text[:, above]].copy()
    parents_of[:, n] = first[:, above] - 1
    if siblings != WITHOUT:
      weight *= own[np.arange(number), tokens[:, n]]
    if siblings != INDEPENDENT:
      for m in range(n):
        taken = valid[:, m] & (parents_of[:, m] == parents_of[:, n])
        same = taken & (text[:, m + 1] == text[:, n + 1])
        own[taken, tokens[taken, m]] = 0
        if siblings == MERGED:
          first[same, n + 1], valid[same, n] = m + 1, False
      mass = own.sum(-1)
      own = np.where(mass[:, None] > 0, own / np.where(mass > 0, mass, 1)[:, None], np.nan)
      if siblings == WITHOUT:  # with no token left the node is not drafted, and no case of token
        valid[:, n] = (mass > 0) & (valid[:, parent] if parent >= 0 else True)
        chance = np.where(valid[:, n], own[np.arange(number), tokens[:, n]], tokens[:, n] == 0)
        weight *= chance
    q[:, n] = own
  p = np.stack([system.p[depth[row]][text[:, row]] for row in range(nodes + 1)], 1)
  np.testing.assert_allclose(weight.sum(), 1, atol=1e-12)
  return Drafts(tokens, parents_of, q, valid, p, weight, text, depth)


def cut(drafts_, nodes):
  """The same drafts with some nodes not drafted; the laws recorded there are not to be read."""
  valid, q = drafts_.valid.copy(), drafts_.q.copy()
  valid[:, nodes], q[:, nodes] = False, np.nan
  return drafts_._replace(valid=valid, q=q)


def laws(rule, drafts_):
  """exact.law float64[M, N + 1, V] of every draft."""
  return laws_of_all(rule, [drafts_])[0]


def laws_of_all(rule, several):
  """`laws` of the drafts of several systems over one tree.

  They go through one compiled program in lots of fixed size, for compiling takes most of the time.
  """
  fields = [np.concatenate(parts) for parts in zip(*(each[:5] for each in several))]
  number = len(fields[0])
  fields = [np.concatenate([x, np.repeat(x[-1:], -number % LOT, 0)]) for x in fields]
  with jax.enable_x64(True):
    lots = [np.asarray(_laws(rule, *(jnp.asarray(x[at:at + LOT]) for x in fields)))
            for at in range(0, number, LOT)]
  return np.split(np.concatenate(lots)[:number], np.cumsum([len(x.weight) for x in several])[:-1])


@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def _laws(rule, tokens, parents, q, valid, p):
  one = lambda draft, log_p: law(rule, draft, log_p)
  return jax.vmap(one)(Draft(tokens, parents, jnp.log(q), valid), jnp.log(p))


def literal(rule, drafts_, **options):
  """The law float64[M, N + 1, V] of every draft under a rule of `papers`."""
  rows = zip(drafts_.tokens, drafts_.parents, drafts_.q, drafts_.valid, drafts_.p)
  return np.stack([rule(toys.Case(*row), **options) if weight > 0 else np.zeros_like(row[-1])
                   for row, weight in zip(rows, drafts_.weight)])


def text_law(system, drafts_, laws_):
  """float64[V^(D + 1)]: the law of the first D + 1 tokens, the round's own, then samples of p."""
  vocab, depth = system.p[0].shape[1], drafts_.depth.max()
  at_length = [np.zeros(vocab ** (d + 1)) for d in range(depth + 1)]
  for row, d in enumerate(drafts_.depth):
    mass = drafts_.weight[:, None] * laws_[:, row]
    np.add.at(at_length[d], drafts_.text[:, row, None] * vocab + np.arange(vocab), mass)
  total = at_length[0]
  for d in range(1, depth + 1):
    total = (total[:, None] * system.p[d]).reshape(-1) + at_length[d]
  return total


def target_law(system, depth):
  total = system.p[0][0]
  for d in range(1, depth + 1):
    total = (total[:, None] * system.p[d]).reshape(-1)
  return total


def tv(system, drafts_, laws_):
  """The distance of the round's text from the target's, over D + 1 tokens."""
  difference = text_law(system, drafts_, laws_) - target_law(system, drafts_.depth.max())
  return np.abs(difference).sum() / 2


def accepted(drafts_, laws_):
  """E[tau], the expected number of accepted tokens."""
  return float(drafts_.weight @ laws_.sum(-1) @ drafts_.depth)


def outcomes(rule, systems, parents, siblings=INDEPENDENT):
  """TV and E[tau], float64[S] each, of a rule of the library over systems."""
  several = [drafts(system, parents, siblings) for system in systems]
  results = laws_of_all(rule, several)
  return (np.array([tv(*each) for each in zip(systems, several, results)]),
          np.array([accepted(*each) for each in zip(several, results)]))


def literal_outcome(rule, system, parents, siblings=INDEPENDENT, **options):
  """(TV, E[tau]) of a rule of `papers`."""
  all_drafts = drafts(system, parents, siblings)
  got = literal(rule, all_drafts, **options)
  return tv(system, all_drafts, got), accepted(all_drafts, got)
