"""Decoders without their models, to measure what a round costs besides passes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial

from specjax import decode
from specjax.types import Array, Context, Draft, Drafter, Output, Params, Proposal, PyTree, Target

PERIOD = 16  # the table repeats a text of so many tokens, which every drafter guesses


def without_models(decoder: decode.Decoder) -> decode.Decoder:
  """The decoder with a table of logits in place of every model, its drafter's included."""
  is_target = lambda node: isinstance(node, Target)
  stub = lambda node: _stub(node) if is_target(node) else node
  return jax.tree.map(stub, decoder, is_leaf=is_target)


def with_fixed_draft(decoder: decode.Decoder, draft: Draft) -> decode.Decoder:
  """The decoder with a drafter that gives the same batched draft in every round, for nothing."""
  drafter = Drafter(
      propose=Partial(_give, draft), nodes=decoder.drafter.nodes, depth=decoder.drafter.depth,
      abstains=False, siblings=decoder.drafter.siblings)
  return decode.Decoder(
      decoder.target, drafter, decoder.rule, decoder.transform, decoder.window)


def _give(draft: Draft, keys: Array, params: Params, state: tuple, context: Context) -> Proposal:
  del keys, params
  return Proposal(draft, state, context.cache)


def _stub(target: Target) -> Target:
  scores = np.random.default_rng(0).normal(size=(PERIOD, target.vocab_size)).astype(np.float32)
  place = np.arange(PERIOD)
  scores[place, (place + 1) % PERIOD % target.vocab_size] = 20
  return Target(
      init=Partial(_no_cache), forward=Partial(_look_up, jnp.asarray(scores)),
      commit=Partial(_no_commit), vocab_size=target.vocab_size, max_length=None)


def _no_cache(params: PyTree, batch: int, capacity: int) -> tuple:
  del params, batch, capacity
  return ()


def _look_up(scores, params, cache, tokens, lengths, depths=None, mask=None) -> Output:
  del params, lengths, depths, mask
  # The barrier makes the logits an array, as those of a model are, that consumers read again.
  return Output(lax.optimization_barrier(scores[tokens % PERIOD]), None, cache)


def _no_commit(cache: tuple, lengths: Array, path: Array) -> tuple:
  del lengths, path
  return cache
