"""Seeded draws through the coupled rules and through noise that must not be shared."""

import functools
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers import toys
from specjax import keys as keys_lib
from specjax.logits import law
from specjax.types import Draft


def coupled(make: Callable, laws: tuple, paths: int, number: int, seed: int) -> float:
  """How often a coupled rule accepts one of `paths` drafts of one position, over `number` draws."""
  log_p, log_q = _logs(toys.padded(laws, 3))
  keys = jax.random.split(jax.random.key(seed), number)
  return (_verdicts(make(), paths, log_p, log_q, keys).count - 1).mean().item()


def changed_by_drafter(make: Callable, laws: tuple, number: int, seed: int) -> int:
  """How many of `number` emitted tokens change if q is replaced by the uniform law."""
  log_p, log_q = _logs(laws)
  keys = jax.random.split(jax.random.key(seed), number)
  first, second = (
      _verdicts(make(), 1, log_p, drafter, keys).tokens[:, 0]
      for drafter in (log_q, jnp.full_like(log_q, -np.log(log_q.size))))
  return (first != second).sum().item()


@functools.partial(jax.jit, static_argnums=1)
def _verdicts(rule, paths, log_p, log_q, keys):
  """Verdicts on drafts of one position, each drawn with the noise that the rule asks for."""
  repeat = lambda law, rows: jnp.broadcast_to(law, (rows, law.shape[0]))

  def one(key):
    first, after = jax.random.split(key)
    noise = [first] if paths == 1 else [keys_lib.path(first, path) for path in range(paths)]
    draft = Draft(
        tokens=jnp.stack([law.sample(each, log_q) for each in noise]),
        parents=jnp.full(paths, -1, jnp.int32), log_q=repeat(log_q, paths),
        valid=jnp.ones(paths, bool))
    return rule.verify(jnp.stack([first, after]), draft, repeat(log_p, paths + 1), depth=1)

  return jax.lax.map(one, keys, batch_size=min(keys.shape[0], 20_000))


@functools.partial(jax.jit, static_argnums=2)
def _shared_noise(log_p, log_q, number, key):
  """The law of the token if the residual is drawn with the draft's own noise, float[V]."""
  def one(key):
    noise, coin = jax.random.split(key)
    field = law.noise(noise, log_q.shape)
    token = jnp.argmax(log_q + field)
    accepted = jax.random.uniform(coin) < jnp.exp(log_p[token] - log_q[token])
    again = jnp.argmax(law.log_residual(log_p, log_q) + field)  # the fault: the field has been read
    return jax.nn.one_hot(jnp.where(accepted, token, again), log_p.shape[0])

  keys = jax.random.split(key, number)
  return jax.lax.map(one, keys, batch_size=20_000).mean(0)


def reused_noise(laws: tuple, number: int, seed: int) -> np.ndarray:
  """The law of the emitted token float[V] when draft and residual share their noise."""
  log_p, log_q = _logs(laws)
  return np.asarray(_shared_noise(log_p, log_q, number, jax.random.key(seed)))


def _logs(laws: tuple):
  with np.errstate(divide="ignore"):
    return tuple(jnp.asarray(np.log(each), jnp.float32) for each in laws)
