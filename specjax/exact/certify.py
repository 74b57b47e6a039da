"""Certificates: the exact law of a rule's text against the target's, over systems and drafts."""

import functools
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from specjax.exact import bounds, claims, coupled, prefixes, rounds
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
  cases = tuple(_case(rule, scheme, systems, seed) for scheme in schemes)
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


def _case(rule: Rule, scheme: drafts_lib.Scheme, systems: systems_lib.Systems, seed: int) -> Case:
  vocab = systems.log_p.shape[-1]
  if scheme.depth > prefixes.depth_of(vocab, systems.log_p.shape[1]):
    raise ValueError(
        f"{scheme.name} reads laws after up to {scheme.depth} tokens; the systems have "
        f"{systems.log_p.shape[1]} rows, which are laws after fewer.")
  with jax.enable_x64(True):
    log_p, log_q = jnp.asarray(systems.log_p), jnp.asarray(systems.log_q)
    drafts = _enumerate(scheme, log_q)
    if rule.coupled:
      tv, tau = coupled.outcome(rule, scheme, log_p, log_q, jax.random.key(seed))
    else:
      tv, tau = outcome(rule, drafts, log_p)
    best = _optimum(scheme, drafts, log_p, log_q)
    tv, tau, best = (np.asarray(x) for x in (tv, tau, best))
  return Case(
      scheme=scheme.name,
      max_tv=float(np.max(tv)),
      worst=systems.names[int(np.argmax(tv))],  # argmax returns the first NaN, if there is one
      block_efficiency=float(tau.mean()) + 1,
      optimum=float(best.mean()) + 1,
      drafts=drafts.weight.shape[1],
      systems=len(systems.names))


@functools.partial(jax.jit, static_argnums=0)
def _enumerate(scheme: drafts_lib.Scheme, log_q: Array) -> drafts_lib.Drafts:
  return jax.vmap(functools.partial(drafts_lib.enumerate_drafts, scheme))(log_q)


# Most of the time goes into compiling, and the numbers do not depend on how well that is done. Drafts
# are arguments, so that all schemes of N nodes share one program.
@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def outcome(rule: Rule, drafts: drafts_lib.Drafts, log_p: Array) -> tuple[Array, Array]:
  """Total variation and E[tau], each float[S].

  Drafts without a law are judged one by one: the worst total variation, the best E[tau].

  Args:
    rule: the rule, not a coupled one.
    drafts: all drafts of S systems, every field with a leading axis S.
    log_p: float[S, M, V].
  """
  def one(system):
    drafts, p = system
    committed = jax.vmap(lambda group: rounds.one_round(rule, group, p))(drafts_lib.groups(drafts))
    tv = jax.vmap(lambda each: rounds.total_variation(each, p))(committed)
    return tv.max(), jax.vmap(rounds.accepted)(committed).max()

  return jax.lax.map(one, (drafts, log_p), batch_size=_AT_ONCE)


@functools.partial(jax.jit, static_argnums=0)
def _optimum(scheme: drafts_lib.Scheme, drafts: drafts_lib.Drafts, log_p: Array, log_q: Array):
  if scheme.is_chain and scheme.siblings != drafts_lib.DETERMINISTIC:
    rows = prefixes.count(log_p.shape[-1], sum(scheme.drafted))
    return jax.vmap(bounds.single_path)(log_p[:, :rows], log_q[:, :rows])

  def one(system):
    drafts, p = system
    ideal = functools.partial(bounds.joint_ideal, log_p=p, depth=scheme.depth)
    return jax.vmap(ideal)(drafts_lib.groups(drafts)).max()

  return jax.lax.map(one, (drafts, log_p), batch_size=_AT_ONCE)
