"""Systems to check rules on: a target and a drafter as tables over every prefix.

The laws depend on the prefix, because a rule may be right for context-free laws alone, and random
systems have V >= 3, because several known faults cannot be seen with two tokens.
"""

from typing import NamedTuple

import numpy as np

from specjax.exact import prefixes
from specjax.types import Error

PAIRS = {  # target and drafter, read after every prefix
    "AB": ((1 / 3, 2 / 3), (2 / 3, 1 / 3)),  # the example of block verification, arXiv 2403.10444
    "P3": ((.3, .4, .3), (.6, .3, .1)),  # the worked example of traversal, arXiv 2505.12398
    "S3": ((.7, .2, .1), (.2, .5, .3)),
    "R3": ((.5, .3, .2), (.2, .3, .5)),
}


class Systems(NamedTuple):
  """S systems over one vocabulary; M = prefixes.count(V, D) prefixes of at most D tokens."""

  names: tuple[str, ...]
  log_p: np.ndarray  # float64[S, M, V]: the target's law after every prefix
  log_q: np.ndarray  # float64[S, M, V]: the drafter's; the longest prefixes are never drafted from


def context_free(name: str, p, q, depth: int) -> Systems:
  """One system that reads the same laws p float[V] and q float[V] after every prefix."""
  rows = prefixes.count(len(p), depth)
  return _systems([(name, *(np.tile(np.asarray(law, float), (rows, 1)) for law in (p, q)))])


def pair(name: str, depth: int, vocab: int | None = None) -> Systems:
  """One of the named, context-free pairs AB, P3, S3 and R3.

  Args:
    name: the pair.
    depth: D.
    vocab: V; tokens beyond those of the pair have probability zero. Its own number if not given.

  Raises:
    Error: an unknown name, or a vocabulary too small for the pair.
  """
  if name not in PAIRS:
    raise Error(f"unknown pair {name!r}; known: {', '.join(PAIRS)}.")
  p, q = PAIRS[name]
  vocab = len(p) if vocab is None else vocab
  if vocab < len(p):
    raise Error(f"pair {name} has {len(p)} tokens, more than a vocabulary of {vocab}.")
  return context_free(name, *(law + (0,) * (vocab - len(law)) for law in (p, q)), depth)


def random(seed: int, number: int, vocab: int, depth: int) -> Systems:
  """Prefix-dependent systems, in turn Dirichlet laws, sharp ones, and drafters near the target."""
  rng = np.random.default_rng(seed)
  made = []
  for index in range(number):
    p, q = _flat(rng, vocab, depth), _flat(rng, vocab, depth)
    if index % 3 == 1:
      p, q = _sharp(rng, vocab, depth), _sharp(rng, vocab, depth)
    elif index % 3 == 2:
      q = .9 * p + .1 * q
    made.append((f"random {index}", p, q))
  return _systems(made)


def degenerate(vocab: int, depth: int, seed: int = 0) -> Systems:
  """The corners: equal laws, disjoint or partial supports, point masses, ties, and nearly each."""
  rng = np.random.default_rng(seed)
  p, q = _flat(rng, vocab, depth), _flat(rng, vocab, depth)
  hot, other = _one_hot(rng, p), _one_hot(rng, q)
  half = _some_tokens(rng, p)
  uniform = np.full_like(p, 1 / vocab)
  return _systems([
      ("equal", p, p),
      ("equal uniform", uniform, uniform),
      ("equal one-hot", hot, hot),
      ("nearly equal", p, _normal(p * (1 + 1e-9 * q))),
      ("disjoint", _normal(p * half), _normal(q * ~half)),
      ("one-hot target", hot, q),
      ("one-hot drafter", p, hot),
      ("one-hot target and drafter", hot, other),
      ("nearly one-hot target", _normal(hot + 1e-12 * p), q),
      ("nearly one-hot drafter", p, _normal(hot + 1e-12 * q)),
      ("drafter without some tokens", p, _normal(q * half)),
      ("target without some tokens", _normal(p * half), q),
      ("both without some tokens", _normal(p * half), _normal(q * _some_tokens(rng, p))),
      ("uniform target", uniform, q),
      ("uniform drafter", p, uniform),
      ("tied ratios", _tied(rng, p), _tied(rng, q)),
      ("uniform over half, uniform", _normal(uniform * half), uniform),
  ])


def concatenate(*parts: Systems) -> Systems:
  """All systems of the parts, which must agree in V and D."""
  return Systems(
      sum((part.names for part in parts), ()),
      np.concatenate([part.log_p for part in parts]),
      np.concatenate([part.log_q for part in parts]))


def _systems(made) -> Systems:
  names, p, q = zip(*made)
  with np.errstate(divide="ignore"):
    return Systems(tuple(names), np.log(np.stack(p)), np.log(np.stack(q)))


def _flat(rng, vocab, depth):
  return rng.dirichlet(np.ones(vocab), prefixes.count(vocab, depth))


def _sharp(rng, vocab, depth):
  return _normal(np.exp(4 * rng.standard_normal((prefixes.count(vocab, depth), vocab))))


def _normal(rows):
  return rows / rows.sum(-1, keepdims=True)


def _one_hot(rng, like):
  return np.eye(like.shape[1])[rng.integers(like.shape[1], size=like.shape[0])]


def _some_tokens(rng, like):
  """bool like `like`: in every row at least one token is in and one is out."""
  ranks = rng.permuted(np.tile(np.arange(like.shape[1]), (like.shape[0], 1)), axis=1)
  return ranks < rng.integers(1, like.shape[1], size=(like.shape[0], 1))


def _tied(rng, like):
  """Laws whose probabilities are multiples of 1 / 2V, so that ratios and differences tie often."""
  vocab = like.shape[1]
  return rng.multinomial(2 * vocab, np.full(vocab, 1 / vocab), size=like.shape[0]) / (2 * vocab)
