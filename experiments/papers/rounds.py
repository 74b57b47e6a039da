"""Exact values of whole rounds: chains, trees and paths of drafts, on the laws of `toys`."""

import functools
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers import toys
from specjax import exact
from specjax.exact import bounds, drafts, race, rounds as exact_rounds, systems
from specjax.types import Draft

_RANDOM = 20  # random systems of a certificate, beside the degenerate ones
# Smaller vocabularies get tokens without mass, so that one program serves all pairs; larger drafts
# would be too many.
_TOKENS, _NODES = 3, 4
_DEPTH = 3  # of the chain that shorter ones are cut from


def chain(gamma: int) -> drafts.Scheme:
  """A chain of gamma tokens, as the beginning of a longer one whose rest is never drafted."""
  return drafts.chain(_DEPTH if gamma <= _DEPTH else 6)._replace(invalid=(gamma,))


@functools.lru_cache(maxsize=None)
@toys.in_float64
def judged(make: Callable, scheme: drafts.Scheme, laws: tuple) -> tuple[float, float]:
  """(TV of the text from the target's law, E[accepted tokens]) of a rule on all drafts."""
  if len(scheme.parents) <= _NODES:
    laws = toys.padded(laws, _TOKENS)
  log_p, every = toys.enumerate_drafts(scheme, laws)
  return tuple(value.item() for value in _outcome(make(), every, log_p))


@toys.jit
def _outcome(rule, every, log_p):
  committed = exact_rounds.one_round(rule, every, log_p)
  return exact_rounds.total_variation(committed, log_p), exact_rounds.accepted(committed)


def tau(make: Callable, scheme: drafts.Scheme, laws: tuple) -> float:
  """E[accepted tokens]; block efficiency is this plus one."""
  return judged(make, scheme, laws)[1]


def chain_taus(make: Callable, laws: tuple, gammas) -> list[float]:
  """E[accepted tokens] of a chain for each gamma."""
  return [tau(make, chain(gamma), laws) for gamma in gammas]


def chain_tau(make: Callable, laws: tuple, gamma: int) -> float:
  """E[accepted tokens] of a chain."""
  return chain_taus(make, laws, (gamma,))[0]


def chain_tv(make: Callable, laws: tuple, gamma: int) -> float:
  """Total variation between the text's law and the target's, for a chain."""
  return judged(make, chain(gamma), laws)[0]


def two_paths(make: Callable, laws: tuple, kind: str = toys.IID) -> float:
  """E[tau] of two independent paths of two tokens, each its own chain below the root."""
  return tau(make, drafts.paths(2, 2, kind), laws)


@functools.lru_cache(maxsize=None)
@toys.in_float64
def joined_paths(make: Callable, laws: tuple) -> tuple[float, float]:
  """(TV, E[tau]) of two independent paths of two, of which equal first tokens share what follows.

  Both copies of an equal first token stay, each with both continuations, so that rules which try
  every draft try it twice.
  """
  log_p, every = toys.enumerate_drafts(drafts.paths(2, 2), toys.padded(laws, _TOKENS))
  nodes = np.array([0, 2, 1, 3, 1, 3])  # a 2x2 tree, by the nodes of the two chains
  old = every.draft
  equal = old.tokens[:, 0] == old.tokens[:, 2]
  always = jnp.ones_like(equal)
  draft = Draft(
      tokens=old.tokens[:, nodes], log_q=old.log_q[:, nodes],
      parents=jnp.broadcast_to(jnp.array([-1, -1, 0, 0, 1, 1], jnp.int32), (equal.shape[0], 6)),
      valid=jnp.stack([always, always, always, equal, equal, always], axis=1))
  texts = jnp.concatenate([every.prefixes[:, :1], every.prefixes[:, 1 + nodes]], axis=1)
  found = _outcome(make(), drafts.Drafts(draft, every.weight, texts), log_p)
  return tuple(value.item() for value in found)


@toys.in_float64
def committed(make: Callable, scheme: drafts.Scheme, laws: tuple) -> np.ndarray:
  """float[M, V]: P(the round accepts exactly the text c, the extra token is v)."""
  log_p, every = toys.enumerate_drafts(scheme, laws)
  return np.asarray(toys.jit(exact_rounds.one_round)(make(), every, log_p))


@toys.in_float64
def joint_ideal(laws: tuple, gamma: int) -> float:
  """E[tau] of a chain whose blocks are coupled ideally."""
  tables = systems.context_free("", *laws, gamma)
  log_p, log_q = jnp.asarray(tables.log_p[0]), jnp.asarray(tables.log_q[0])
  return _joint_ideal(drafts.chain(gamma), log_p, log_q).item()


@functools.partial(toys.jit, static_argnums=0)
def _joint_ideal(scheme, log_p, log_q):
  return bounds.joint_ideal(drafts.enumerate_drafts(scheme, log_q), log_p, scheme.depth)


@toys.in_float64
def coupled_tau(laws: tuple, paths: int, length: int) -> float:
  """E[tau] of paths whose Gumbel noise the target shares."""
  tables = systems.context_free("", *toys.padded(laws, _TOKENS), length)
  return _race(jnp.asarray(tables.log_p[0]), jnp.asarray(tables.log_q[0]), paths).item()


@functools.partial(toys.jit, static_argnums=2)
def _race(log_p, log_q, paths):
  return race.accepted(log_p, log_q, paths)


@functools.lru_cache(maxsize=None)
def certificate(make: Callable, scheme: drafts.Scheme):
  """The certificate over random and degenerate systems with three tokens."""
  return exact.certify(make(), schemes=(scheme,), number=_RANDOM)


@functools.lru_cache(maxsize=None)
@toys.in_float64
def largest_gap(first: Callable, second: Callable, gamma: int) -> float:
  """The largest difference between two rules in P(the round accepts the text c, then v)."""
  tables = _systems(gamma)
  one, other = (_all_rounds(make(), drafts.chain(gamma), *tables) for make in (first, second))
  return jnp.abs(one - other).max().item()


@toys.in_float64
def least_gain(first: Callable, second: Callable, gamma: int) -> float:
  """The smallest E[tau] of one rule less that of another, over random and degenerate systems."""
  one, other = (
      jax.vmap(exact_rounds.accepted)(_all_rounds(make(), drafts.chain(gamma), *_systems(gamma)))
      for make in (first, second))
  return (one - other).min().item()


def _systems(gamma: int):
  """log p and log q, float[S, M, V], of random and degenerate systems with three tokens."""
  tables = systems.concatenate(
      systems.random(0, _RANDOM, 3, gamma), systems.degenerate(3, gamma))
  return jnp.asarray(tables.log_p), jnp.asarray(tables.log_q)


@functools.partial(toys.jit, static_argnums=1)
def _all_rounds(rule, scheme, log_p, log_q):
  def one(tables):
    p, q = tables
    return exact_rounds.one_round(rule, drafts.enumerate_drafts(scheme, q), p)

  return jax.lax.map(one, (log_p, log_q))
