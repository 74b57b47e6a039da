"""A target that keeps a fingerprint of the logits of every position it scores.

Two runs gave bitwise equal logits at a position iff their fingerprints agree there, up to a chance
of 2^-32: the whole vocabulary is compared without keeping it.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.types import Array, Context, Drafter, Output, Params, Proposal, PyTree, Target


def fingerprinted(target: Target) -> Target:
  """The same target over a cache (inner cache, fingerprints uint32[B, S]).

  The fingerprint at slot s is that of the logits after the token at s. Rejected drafts leave theirs
  beyond the text, as they do in the cache itself.
  """
  return Target(
      init=Partial(_init, target), forward=Partial(_forward, target),
      commit=Partial(_commit, target), vocab_size=target.vocab_size, max_length=target.max_length,
      captures=target.captures)


def drafting_behind(drafter: Drafter) -> Drafter:
  """The same drafter for a fingerprinted target: it sees the inner cache and leaves no prints."""
  return dataclasses.replace(drafter, propose=Partial(_propose, drafter))


def fingerprint(logits: Array) -> Array:
  """uint32[...] of the bits of float32[..., V]: a sum modulo 2^32, so its order cannot matter."""
  bits = lax.bitcast_convert_type(logits.astype(jnp.float32), jnp.uint32)
  place = lax.broadcasted_iota(jnp.uint32, logits.shape, logits.ndim - 1)
  mixed = (bits ^ (bits >> 15)) * jnp.uint32(0x2C1B3C6D)
  return ((mixed ^ (mixed >> 12)) * (2 * place + 1)).sum(-1, dtype=jnp.uint32)


def _propose(
    drafter: Drafter, keys: Array, params: Params, state: PyTree, context: Context) -> Proposal:
  inner, prints = context.cache
  proposal = drafter.propose(keys, params, state, context._replace(cache=inner))
  return proposal._replace(cache=(proposal.cache, prints))


def _init(target: Target, params: PyTree, batch: int, capacity: int) -> tuple:
  return target.init(params, batch, capacity), jnp.zeros((batch, capacity), jnp.uint32)


def _forward(
    target: Target, params: PyTree, cache: tuple, tokens: Array, lengths: Array,
    depths: Array | None = None, mask: Array | None = None) -> Output:
  inner, prints = cache
  output = target.forward(params, inner, tokens, lengths, depths, mask)
  start = lengths if mask is None else lengths + mask.shape[2] - mask.shape[1]
  prints = _write(prints, fingerprint(output.logits), start)
  return Output(output.logits, output.features, (output.cache, prints))


def _commit(target: Target, cache: tuple, lengths: Array, path: Array) -> tuple:
  inner, prints = cache
  depths = jnp.arange(path.shape[1], dtype=path.dtype)[None]
  sources = lengths[:, None] + 1 + jnp.where(path >= 0, path, depths)
  kept = jnp.take_along_axis(prints, sources, axis=1)
  return target.commit(inner, lengths, path), _write(prints, kept, lengths + 1)


@jax.vmap
def _write(row: Array, new: Array, start: Array) -> Array:
  """The prints of one row with the new ones from slot `start` on."""
  return lax.dynamic_update_slice(row, new, (start,))
