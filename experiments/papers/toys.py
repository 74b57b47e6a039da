"""What the claims share: exact values of the real rules on small laws, all in float64.

A rule is given as the function that makes it (`verify.block`), laws as tuples of probabilities.
"""

import functools
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from specjax import exact
from specjax.exact import bounds, drafts, systems
from specjax.exact.certify import outcome

AB = ((1 / 3, 2 / 3), (2 / 3, 1 / 3))
P3 = ((0.3, 0.4, 0.3), (0.6, 0.3, 0.1))
S3 = ((0.7, 0.2, 0.1), (0.2, 0.5, 0.3))
R3 = ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5))
SWAPPED = ((3 / 4, 1 / 4), (1 / 4, 3 / 4))
HALF = ((1 / 2, 1 / 2, 0, 0), (1 / 4, 1 / 4, 1 / 4, 1 / 4))  # uniform on 2 tokens and on 4
SURE = ((1.0, 0.0), (0.5, 0.5))
EVEN = ((0.5, 0.5), (0.5, 0.5))


def in_float64(function: Callable) -> Callable:
  """Decorator: jax.numpy inside of the function computes in float64."""
  @functools.wraps(function)
  def wrapped(*args, **kwargs):
    with jax.enable_x64(True):
      return function(*args, **kwargs)
  return wrapped


def siblings(number: int, kind: str = drafts.INDEPENDENT) -> drafts.Scheme:
  """`number` drafts of one position."""
  return drafts.tree((number,), kind)


@functools.lru_cache(maxsize=None)
@in_float64
def judged(make: Callable, scheme: drafts.Scheme, laws: tuple) -> tuple[float, float]:
  """(TV of the text from the target's law, E[accepted tokens]) of context-free laws (p, q)."""
  tables = systems.context_free("", *laws, scheme.depth)
  found = outcome(make(), scheme, jnp.asarray(tables.log_p), jnp.asarray(tables.log_q))
  return tuple(value.item() for value in found)


def tau(make: Callable, scheme: drafts.Scheme, laws: tuple) -> float:
  """E[accepted tokens]; block efficiency is this plus one."""
  return judged(make, scheme, laws)[1]


def tv(make: Callable, scheme: drafts.Scheme, laws: tuple) -> float:
  """Total variation between the text's law and the target's over D + 1 tokens."""
  return judged(make, scheme, laws)[0]


def token_tau(make: Callable, laws: tuple, gammas) -> tuple[float, ...]:
  """E[tau] of a chain for each gamma."""
  return tuple(tau(make, drafts.chain(gamma), laws) for gamma in gammas)


@functools.lru_cache(maxsize=None)
@in_float64
def one_position(make: Callable, scheme: drafts.Scheme, laws: tuple):
  """(law of the output token float[V], P(some draft is accepted), P(the output was drafted))."""
  tables = systems.context_free("", *laws, 1)
  log_p, log_q = jnp.asarray(tables.log_p[0]), jnp.asarray(tables.log_q[0])
  every = drafts.enumerate_drafts(scheme, log_q)
  return sum_position(make(), every.draft, every.weight, log_p[0])


def sum_position(rule, draft, weight, log_p):
  """`one_position` for drafts with leading axis A and probabilities weight float[A]."""
  rows = jnp.broadcast_to(log_p, (draft.tokens.shape[1] + 1,) + log_p.shape)
  each = jax.vmap(lambda one: exact.law(rule, one, rows))(draft)  # float[A, N + 1, V]
  each = jnp.where(weight[:, None, None] > 0, weight[:, None, None] * each, 0)
  drafted = draft.valid[..., None] & (draft.tokens[..., None] == jnp.arange(log_p.shape[0]))
  taken = (each[:, 1:].sum(-1)[..., None] * drafted).sum((0, 1))
  extra = each[:, 0]
  hit = taken.sum() + jnp.where(drafted.any(1), extra, 0).sum()
  return np.asarray(taken + extra.sum(0)), taken.sum().item(), hit.item()


def output(make: Callable, scheme: drafts.Scheme, laws: tuple) -> np.ndarray:
  """The law float[V] of the token that one position emits."""
  return one_position(make, scheme, laws)[0]


def hit(make: Callable, laws: tuple, number: int, kind: str = drafts.INDEPENDENT) -> float:
  """P(one of `number` drafted tokens is the output)."""
  return one_position(make, siblings(number, kind), laws)[2]


@in_float64
def overlap(laws: tuple) -> float:
  """1 - TV(p, q)."""
  return np.minimum(*map(np.asarray, laws)).sum()


@in_float64
def coupled(laws: tuple, number: int = 1) -> float:
  """P(target's token is drafted) under shared Gumbel noise; a lower bound if number > 1."""
  return bounds.coupled(*map(jnp.asarray, laws), number).sum().item()


@in_float64
def transport(laws: tuple, number: int) -> float:
  """The optimal-transport bound of `number` independent drafts."""
  return bounds.transport(*map(jnp.asarray, laws), number).item()


@functools.lru_cache(maxsize=None)
def worst_tv(make: Callable, number: int = 20, **kwargs) -> float:
  """The largest TV of a certificate over random and degenerate systems with three tokens."""
  return exact.certify(make(), number=number, **kwargs).max_tv
