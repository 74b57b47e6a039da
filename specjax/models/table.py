"""Markov tables: models small enough to enumerate, for proofs and tests.

A table of order k gives the law after the last k tokens, so laws depend on the prefix as they do in
a real model. Positions before the start of the text count as token 0.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.models import window
from specjax.trees import chains
from specjax.types import (
    Array, CHAIN, Context, Drafter, Error, Output, Params, Proposal, PyTree, Target)


def target(logits: Array) -> Target:
  """A Target whose law after the tokens ..., a, b is softmax(logits[..., a, b]).

  Args:
    logits: float[V] * order + [V]. The parameters are the table itself: pass any `params`.

  Raises:
    Error: axes of different lengths.
  """
  logits = _table(logits)
  return Target(
      init=Partial(_init),
      forward=Partial(_forward, logits),
      commit=Partial(_commit),
      vocab_size=logits.shape[-1],
      max_length=None)


def drafter(logits: Array, gamma: int) -> Drafter:
  """A Drafter that draws chains of `gamma` >= 1 tokens from a table of its own.

  Raises:
    Error: gamma < 1, or a table with axes of different lengths.
  """
  if gamma < 1:
    raise Error(f"A drafter drafts at least one token, got gamma = {gamma}.")
  return Drafter(
      propose=Partial(_propose, _table(logits)), nodes=gamma, depth=gamma, abstains=False,
      siblings=CHAIN)


def _table(logits: Array) -> Array:
  logits = jnp.asarray(logits)
  if len(set(logits.shape)) != 1:
    raise Error(f"A Markov table is float[V] * order + [V], got shape {logits.shape}.")
  return logits


def _init(params: PyTree, batch: int, capacity: int) -> Array:
  del params
  return jnp.zeros((batch, capacity), jnp.int32)


def _forward(
    logits: Array, params: PyTree, cache: Array, tokens: Array, lengths: Array,
    depths: Array | None = None, mask: Array | None = None) -> Output:
  del params
  batch, width = tokens.shape
  slots = window.slots(tokens, depths, mask, cache.shape[1])
  if depths is None:
    depths = jnp.broadcast_to(jnp.arange(width), tokens.shape)
  if mask is None:
    mask = jnp.broadcast_to(jnp.tril(jnp.ones((width, width), bool)), (batch, width, width))
  write = lambda row, new, start: lax.dynamic_update_slice(row, new, (start,))
  cache = jax.vmap(write)(cache, tokens, lengths + slots - width)
  read = lambda *row: _read(logits, _contexts(*row, logits.ndim - 1), width)
  return Output(jax.vmap(read)(cache, lengths, depths, mask), None, cache)


def _contexts(
    text: Array, length: Array, depths: Array, mask: Array, order: int) -> tuple[Array, ...]:
  """The last `order` tokens up to and including each new token: `order` arrays int32[T]."""
  behind = lax.dynamic_slice(text, (length,), (mask.shape[1],))  # int32[W]
  # Parents come before children, so a token's ancestor k steps up is the k-th seen slot from the
  # right. Its depth would say the same, but the depths of earlier passes are not kept.
  steps_up = mask[:, ::-1].cumsum(1)[:, ::-1] - 1
  context = []
  for back in reversed(range(order)):
    ancestor = mask & (steps_up == back)
    new = jnp.where(ancestor, behind, 0).sum(-1, dtype=jnp.int32)
    place = length + depths - back
    old = jnp.where(place >= 0, text[jnp.maximum(place, 0)], 0)
    context.append(jnp.where(ancestor.any(-1), new, old))
  return tuple(context)


def _commit(cache: Array, lengths: Array, path: Array) -> Array:
  place = jnp.arange(path.shape[1])

  def move(row, length, path):
    kept = row[length + 1 + jnp.where(path >= 0, path, place)]
    return lax.dynamic_update_slice(row, kept, (length + 1,))

  return jax.vmap(move)(cache, lengths, path)


def _propose(
    logits: Array, keys: Array, params: Params, state: tuple, context: Context) -> Proposal:
  del params
  order = logits.ndim - 1
  places = context.lengths[:, None] - order + jnp.arange(order)[None, :]
  recent = jnp.where(
      places >= 0, jnp.take_along_axis(context.tokens, jnp.maximum(places, 0), axis=1), 0)
  read = lambda recent: _read(logits, tuple(jnp.moveaxis(recent, 1, 0)), recent.shape[0])

  def step(recent, tokens, depth):
    del depth
    recent = jnp.concatenate([recent, tokens[:, None]], axis=1)[:, 1:]
    return read(recent), recent

  draft, _ = chains.draw_chain(read(recent), step, recent, keys, context.law)
  return Proposal(draft, state, context.cache)


def _read(logits: Array, contexts: tuple[Array, ...], rows: int) -> Array:
  """float[rows, V]; a table of order 0 has one row for all contexts."""
  return jnp.broadcast_to(logits[contexts], (rows, logits.shape[-1]))
