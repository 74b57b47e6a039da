"""The small laws that claims are about, and what the real rules do with them at one position.

A rule is given as the function that makes it (`verify.block`), laws as two tuples of probabilities,
the target's first. Everything is computed in float64.
"""

import functools
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from specjax import exact
from specjax.exact import coupling, drafts, systems
from specjax.types import Draft, INDEPENDENT, WITHOUT_REPLACEMENT

AB, P3, S3, R3 = (systems.PAIRS[name] for name in ("AB", "P3", "S3", "R3"))
SWAPPED = ((3 / 4, 1 / 4), (1 / 4, 3 / 4))
HALF = ((1 / 2, 1 / 2, 0, 0), (1 / 4, 1 / 4, 1 / 4, 1 / 4))  # uniform on 2 tokens and on 4
SURE = ((1.0, 0.0), (0.5, 0.5))
EVEN = ((0.5, 0.5), (0.5, 0.5))
POINT = ((0.0, 1.0, 0.0), (0.3, 0.6, 0.1))  # temperature 0: the target is a point mass

IID, WITHOUT = INDEPENDENT, WITHOUT_REPLACEMENT

# Fewer drafts leave nodes invalid and fewer tokens have no mass, so that one program serves all
# pairs and counts.
_MOST_DRAFTS, _MOST_TOKENS = 4, 4

# Compiling takes longer than running, and the values do not depend on how well it is done.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def in_float64(function: Callable) -> Callable:
  """Decorator: jax.numpy inside of the function computes in float64."""
  @functools.wraps(function)
  def wrapped(*args, **kwargs):
    with jax.enable_x64(True):
      return function(*args, **kwargs)
  return wrapped


def padded(laws: tuple, vocab: int) -> tuple:
  """The laws over at least `vocab` tokens, the added ones without mass."""
  return tuple(tuple(law) + (0.0,) * (vocab - len(law)) for law in laws)


def enumerate_drafts(scheme: drafts.Scheme, laws: tuple):
  """(log p float[M, V], all drafts) of laws that are read after every prefix."""
  tables = systems.context_free("", *laws, scheme.depth)
  return jnp.asarray(tables.log_p[0]), _enumerate(scheme, jnp.asarray(tables.log_q[0]))


@functools.partial(jit, static_argnums=0)
def _enumerate(scheme, log_q):
  return drafts.enumerate_drafts(scheme, log_q)


@functools.lru_cache(maxsize=None)
@in_float64
def one_position(make: Callable, number: int, kind: str, laws: tuple) -> tuple[np.ndarray, float]:
  """(law of the emitted token float[V], P(it is one of the `number` drafted tokens))."""
  scheme = drafts.tree((_MOST_DRAFTS,), kind)
  scheme = scheme._replace(invalid=tuple(range(number, _MOST_DRAFTS)))
  log_p, every = enumerate_drafts(scheme, padded(laws, _MOST_TOKENS))
  law, drafted = emitted(make(), every.draft, every.weight, log_p[0])
  return law[:len(laws[0])], drafted


def emitted(rule, draft: Draft, weight, log_p) -> tuple[np.ndarray, float]:
  """`one_position` for drafts with a leading axis A, weight float[A] and log_p float[V]."""
  law, drafted = _emitted(rule, draft, weight, log_p)
  return np.asarray(law), drafted.item()


@jit
def _emitted(rule, draft, weight, log_p):
  rows = jnp.broadcast_to(log_p, (draft.tokens.shape[1] + 1,) + log_p.shape)
  each = jax.vmap(lambda one: exact.law(rule, one, rows))(draft)  # float[A, N + 1, V]
  each = jnp.where(weight[:, None, None] > 0, weight[:, None, None] * each, 0)
  drafted = draft.valid[..., None] & (draft.tokens[..., None] == jnp.arange(log_p.shape[0]))
  accepted = jnp.where(drafted, each[:, 1:].sum(-1, keepdims=True), 0).sum((0, 1))
  extra = each[:, 0]  # the law of the token where no draft was accepted
  return accepted + extra.sum(0), accepted.sum() + jnp.where(drafted.any(1), extra, 0).sum()


def output(make: Callable, laws: tuple, number: int = 1, kind: str = IID) -> np.ndarray:
  """The law float[V] of the token that one position emits."""
  return one_position(make, number, kind, laws)[0]


def hit(make: Callable, laws: tuple, number: int, kind: str = IID) -> float:
  """P(one of `number` drafted tokens is emitted)."""
  return one_position(make, number, kind, laws)[1]


@in_float64
def hit_by(make: Callable, tokens: tuple[int, ...], p: tuple) -> float:
  """P(one of these deterministically drafted tokens is emitted)."""
  number = len(tokens)
  draft = Draft(
      tokens=jnp.asarray([tokens], jnp.int32), parents=jnp.full((1, number), -1, jnp.int32),
      log_q=None, valid=jnp.ones((1, number), bool))
  return emitted(make(), draft, jnp.ones(1), jnp.log(jnp.asarray(p)))[1]


@jit
def decide(rule, draft: Draft, log_p):
  """`rule.decide`, compiled."""
  return rule.decide(draft, log_p)


def overlap(laws: tuple) -> float:
  """1 - TV(p, q)."""
  return np.minimum(*map(np.asarray, laws)).sum()


@in_float64
def closed(form: Callable, laws: tuple, *args) -> float:
  """A closed form of `exact.coupling` or `exact.bounds` that takes p, q and further arguments."""
  return form(*map(jnp.asarray, laws), *args).item()


def gumbel(laws: tuple) -> float:
  """P(draft and target agree) under shared Gumbel noise."""
  return closed(coupling.gumbel_acceptance, laws)
