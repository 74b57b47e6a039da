"""Certificates: the exact law of a rule's text against the target's, over systems and drafts."""

import functools
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from specjax.exact import (
    bounds, coupled, drafts as drafts_lib, prefixes, rounds, schemes as schemes_lib,
    systems as systems_lib)
from specjax.types import Array, DETERMINISTIC, Error
from specjax.verify.rule import Rule

TOLERANCE = 1e-12  # of a total variation in float64; what rounding leaves is below 1e-14

_AT_ONCE = 8  # systems in a batch; bounds the memory


class Case(NamedTuple):
  """One way of drafting: what came out for every system. `Certificate.how` tells the grounds."""

  scheme: drafts_lib.Scheme
  systems: tuple[str, ...]  # the S names
  tv: np.ndarray  # float64[S]: between text and target over D + 1 tokens
  accepted: np.ndarray  # float64[S]: E[tau]; NaN where it depends on more than the laws
  optimum: np.ndarray  # float64[S]: E[tau] of the best rule for these drafts, or a bound; `bounds`

  def __repr__(self) -> str:  # not its arrays
    return (f"Case({self.scheme.name!r}, systems={len(self.systems)}, max_tv={self.max_tv:.1e}, "
            f"block_efficiency={self.block_efficiency:.4f})")

  @property
  def max_tv(self) -> float:
    return float(np.max(self.tv))  # NaN stays NaN

  @property
  def worst(self) -> str:
    """The name of the system with the largest total variation."""
    return self.systems[int(np.argmax(self.tv))]  # the first NaN, if there is one

  @property
  def block_efficiency(self) -> float:
    """E[tau] + 1, the tokens of a round, mean over the systems."""
    return float(self.accepted.mean()) + 1

  @property
  def distance(self) -> float:
    """Accepted tokens short of the optimum, mean over the systems."""
    return float((self.optimum - self.accepted).mean())

  def at(self, system: str) -> float:
    """E[tau] in the system of that name."""
    return float(self.accepted[self.systems.index(system)])


class Certificate(NamedTuple):
  """The outcome over all ways of drafting that the rule serves."""

  max_tv: float  # the worst over all cases and systems; NaN stays NaN
  block_efficiency: float  # of the first case
  distance: float  # of the first case
  cases: tuple[Case, ...]
  how: str  # "enumerated": exact sums; for coupled rules what stands in their place, see `coupled`
  seconds: float

  @property
  def lossless(self) -> bool:
    return self.max_tv <= TOLERANCE  # false for NaN


def certify(rule: Rule, schemes=None, systems: systems_lib.Systems | None = None,
            vocab: int = 3, number: int = 200, seed: int = 0) -> Certificate:
  """Compares the law of the text under `rule` with the target's, in float64.

  Args:
    rule: any rule.
    schemes: ways of drafting; those that stand for `Rule.serves` if not given.
    systems: the systems; `number` random ones over `vocab` tokens, every degenerate one and the
      named pairs that fit if not given.
    vocab: V, of the random systems.
    number: how many of them.
    seed: of the random systems, and of the noise fields that coupled rules are tried with.

  Raises:
    Error: systems that are too shallow for a scheme, or a coupled rule under drafts that do
      not share its noise; no scheme, no random system, or a vocabulary of a single token.
  """
  if vocab < 2 or number < 1:
    raise Error(
        f"certify needs vocab >= 2, or no token is ever in doubt, and number >= 1 random systems; "
        f"got {vocab} and {number}.")
  start = time.perf_counter()
  schemes = schemes_lib.served(rule) if schemes is None else tuple(schemes)
  if not schemes:
    raise Error(
        "certify needs at least one way of drafting; without `schemes` it takes those that the "
        "rule serves.")
  if systems is None:
    systems = default_systems(vocab, max(scheme.depth for scheme in schemes), number, seed)
  cases = tuple(_case(rule, scheme, systems, seed) for scheme in schemes)
  return Certificate(
      max_tv=float(np.max([case.max_tv for case in cases])),
      block_efficiency=cases[0].block_efficiency,
      distance=cases[0].distance,
      cases=cases,
      how=coupled.how(schemes) if rule.coupled else "enumerated",
      seconds=time.perf_counter() - start)


def default_systems(vocab: int, depth: int, number: int, seed: int) -> systems_lib.Systems:
  """`number` random systems, the degenerate ones, and the named pairs of at most `vocab` tokens."""
  pairs = systems_lib.PAIRS if vocab >= 3 else ("AB",)
  return systems_lib.concatenate(
      systems_lib.random(seed, number, vocab, depth),
      systems_lib.degenerate(vocab, depth, seed),
      *(systems_lib.pair(name, depth, vocab) for name in pairs))


def _case(rule: Rule, scheme: drafts_lib.Scheme, systems: systems_lib.Systems, seed: int) -> Case:
  vocab, rows = systems.log_p.shape[-1], systems.log_p.shape[1]
  if scheme.depth > prefixes.depth_of(vocab, rows):
    raise Error(
        f"{scheme.name} reads laws after up to {scheme.depth} tokens, but the systems have {rows} "
        f"rows, laws after up to {prefixes.depth_of(vocab, rows)}.")
  laws = systems.log_p, systems.log_q, np.arange(len(systems.names), dtype=np.int32)
  parts = []
  for start in range(0, len(systems.names), _AT_ONCE):
    # One shape for every batch, so that it is compiled once: the last system fills up the last one.
    batch = [np.take(x, range(start, start + _AT_ONCE), axis=0, mode="clip") for x in laws]
    with jax.enable_x64(True):
      parts.append([np.asarray(x) for x in _batch(rule, scheme, *map(jnp.asarray, batch), seed)])
  columns = (np.concatenate(column)[:len(systems.names)] for column in zip(*parts))
  return Case(scheme, systems.names, *columns)


def _batch(
    rule: Rule, scheme: drafts_lib.Scheme, log_p: Array, log_q: Array, index: Array, seed: int):
  """The three columns of a `Case`, each float[S]."""
  drafts = _enumerate(scheme, log_q)
  if rule.coupled:
    keys = jax.vmap(functools.partial(jax.random.fold_in, jax.random.key(seed)))(index)
    found = coupled.outcome(rule, scheme, log_p, log_q, keys)
  else:
    found = _outcome(rule, drafts, log_p)
  return *found, _optimum(scheme, drafts, log_p, log_q)


@functools.partial(jax.jit, static_argnums=0)
def _enumerate(scheme: drafts_lib.Scheme, log_q: Array) -> drafts_lib.Drafts:
  return jax.vmap(functools.partial(drafts_lib.enumerate_drafts, scheme))(log_q)


# Most of the time goes into compiling, and the numbers do not depend on how well that is done.
# Drafts are arguments, so that all schemes of N nodes share one program.
@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def _outcome(rule: Rule, drafts: drafts_lib.Drafts, log_p: Array) -> tuple[Array, Array]:
  """Total variation and E[tau], each float[S], of drafts and laws with a leading axis S.

  Drafts without a law are judged one by one: the worst total variation, the best E[tau].
  """
  def one(drafts, p):
    committed = jax.vmap(lambda group: rounds.one_round(rule, group, p))(drafts_lib.groups(drafts))
    tv = jax.vmap(lambda each: rounds.total_variation(each, p))(committed)
    return tv.max(), jax.vmap(rounds.accepted)(committed).max()

  return jax.vmap(one)(drafts, log_p)


@functools.partial(jax.jit, static_argnums=0)
def _optimum(scheme: drafts_lib.Scheme, drafts: drafts_lib.Drafts, log_p: Array, log_q: Array):
  drawn = scheme.siblings != DETERMINISTIC
  if scheme.is_chain and drawn and scheme.stop_below is None:
    rows = prefixes.count(log_p.shape[-1], sum(scheme.drafted))
    return jax.vmap(bounds.single_path)(log_p[:, :rows], log_q[:, :rows])

  def one(drafts, p):
    ideal = functools.partial(bounds.joint_ideal, log_p=p, depth=scheme.depth)
    return jax.vmap(ideal)(drafts_lib.groups(drafts)).max()

  return jax.vmap(one)(drafts, log_p)
