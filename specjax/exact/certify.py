"""Certificates: the exact law of a rule's text against the target's, over systems and drafts."""

import functools
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from specjax.exact import bounds, claims, prefixes, rounds
from specjax.exact import drafts as drafts_lib
from specjax.exact import systems as systems_lib
from specjax.types import Array
from specjax.verify.rule import Rule

TOLERANCE = 1e-12  # of a total variation in float64; what rounding leaves is below 1e-14

_AT_ONCE = 8  # systems; bounds the memory


class Case(NamedTuple):
  """One way of drafting: what was checked and what came out. All sums, in float64, no estimates."""

  scheme: str
  max_tv: float  # between text and target over D + 1 tokens, in the worst system; NaN stays NaN
  worst: str  # the name of that system
  block_efficiency: float  # E[tau] + 1, mean over the systems
  optimum: float  # the same mean for the best rule for these drafts, or a bound; see `bounds`
  drafts: int  # enumerated for each system
  systems: int

  @property
  def distance(self) -> float:
    return self.optimum - self.block_efficiency


class Certificate(NamedTuple):
  """The outcome over all ways of drafting that the rule claims to serve."""

  max_tv: float  # the worst of all cases; NaN stays NaN
  block_efficiency: float  # of the first case
  optimum: float  # of the first case
  cases: tuple[Case, ...]
  seconds: float

  @property
  def lossless(self) -> bool:
    return self.max_tv <= TOLERANCE  # false for NaN

  @property
  def distance(self) -> float:
    return self.optimum - self.block_efficiency


def certify(rule: Rule, schemes=None, systems: systems_lib.Systems | None = None,
            vocab: int = 3, number: int = 200, seed: int = 0) -> Certificate:
  """Compares the exact law of the text under `rule` with the target's.

  Args:
    rule: any rule.
    schemes: ways of drafting; those that `claims.schemes` lists for the rule if not given.
    systems: the systems; `number` random ones over `vocab` tokens, every degenerate one and the
      named pairs of that vocabulary if not given. Tables deeper than a scheme are cut to its depth.
    vocab: V, of the random systems.
    number: how many of them.
    seed: of the random systems.

  Raises:
    ValueError: systems that are too shallow for a scheme.
  """
  start = time.perf_counter()
  schemes = claims.schemes(rule) if schemes is None else tuple(schemes)
  if systems is None:
    systems = default_systems(vocab, max(scheme.depth for scheme in schemes), number, seed)
  cases = tuple(_case(rule, scheme, systems) for scheme in schemes)
  return Certificate(
      max_tv=float(np.max([case.max_tv for case in cases])),  # np.max keeps NaN
      block_efficiency=cases[0].block_efficiency,
      optimum=cases[0].optimum,
      cases=cases,
      seconds=time.perf_counter() - start)


def default_systems(vocab: int, depth: int, number: int, seed: int) -> systems_lib.Systems:
  """`number` random systems, the degenerate ones, and the named pairs over `vocab` tokens."""
  pairs = [systems_lib.pair(name, depth) for name in systems_lib.PAIRS]
  return systems_lib.concatenate(
      systems_lib.random(seed, number, vocab, depth),
      systems_lib.degenerate(vocab, depth, seed),
      *(pair for pair in pairs if pair.log_p.shape[-1] == vocab))


def _case(rule: Rule, scheme: drafts_lib.Scheme, systems: systems_lib.Systems) -> Case:
  vocab = systems.log_p.shape[-1]
  rows = prefixes.count(vocab, scheme.depth)
  if rows > systems.log_p.shape[1]:
    raise ValueError(
        f"{scheme.name} reads laws after up to {scheme.depth} tokens, {rows} rows over {vocab} tokens; "
        f"the systems have {systems.log_p.shape[1]}.")
  with jax.enable_x64(True):
    tables = tuple(jnp.asarray(x[:, :rows]) for x in (systems.log_p, systems.log_q))
    tv, tau = (np.asarray(x) for x in outcome(rule, scheme, *tables))
    best = np.asarray(optimum(scheme, *tables))
  return Case(
      scheme=scheme.name,
      max_tv=float(np.max(tv)),
      worst=systems.names[int(np.argmax(tv))],  # argmax returns the first NaN, if there is one
      block_efficiency=float(tau.mean()) + 1,
      optimum=float(best.mean()) + 1,
      drafts=vocab ** sum(scheme.drafted),
      systems=len(systems.names))


@functools.partial(jax.jit, static_argnames="scheme")
def outcome(rule: Rule, scheme: drafts_lib.Scheme, log_p: Array, log_q: Array):
  """Total variation and E[tau], each float[S], of tables float[S, M, V].

  Deterministic drafts are judged one by one: the worst total variation, the best E[tau].
  """
  def one(tables):
    p, q = tables
    groups = drafts_lib.groups(scheme, drafts_lib.enumerate_drafts(scheme, q))
    committed = jax.vmap(lambda drafts: rounds.one_round(rule, drafts, p))(groups)
    tv = jax.vmap(lambda each: rounds.total_variation(each, p))(committed)
    return tv.max(), jax.vmap(rounds.accepted)(committed).max()

  return jax.lax.map(one, (log_p, log_q), batch_size=_AT_ONCE)


@functools.partial(jax.jit, static_argnames="scheme")
def optimum(scheme: drafts_lib.Scheme, log_p: Array, log_q: Array):
  """The bound float[S] of E[tau] for tables float[S, M, V]; of the best draft if deterministic."""
  path = scheme.is_chain and scheme.siblings != drafts_lib.DETERMINISTIC
  rows = prefixes.count(log_p.shape[-1], sum(scheme.drafted))

  def one(tables):
    p, q = tables
    if path:
      return bounds.single_path(p[:rows], q[:rows])
    groups = drafts_lib.groups(scheme, drafts_lib.enumerate_drafts(scheme, q))
    return jax.vmap(lambda drafts: bounds.joint_ideal(drafts, p))(groups).max()

  return jax.lax.map(one, (log_p, log_q), batch_size=_AT_ONCE)
