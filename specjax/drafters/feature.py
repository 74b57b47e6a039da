"""Chains drawn on from the target's hidden states: EAGLE and MTP.

EAGLE (Li et al., ICML 2024, arXiv 2401.15077), EAGLE-3 (Li et al., NeurIPS 2025, arXiv 2503.01840),
multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2). Only rows that were read with
the target's own features stay in the drafter's cache: those of a draft, made from the network's own
hidden states, are overwritten when the round is observed.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.models.heads import record
from specjax.models.heads.record import Head
from specjax.trees import accepted, chains
from specjax.types import (
    Array, CHAIN, Context, Drafter, Error, Params, Proposal, PyTree, Verdict)


class FeatureState(NamedTuple):
  """The network's cache, and its answer to the last row that it read.

  A text of one token has no row yet: its first draft is drawn from a flat law.
  """

  cache: PyTree
  logits: Array  # float32[B, Vd]
  hidden: Array  # float[B, h]


def feature(head: Head, gamma: int, stop_below: float | None = None) -> Drafter:
  """Drafts chains of `gamma` tokens with `head`, whose parameters are `Params.drafter`.

  What those leave to the target (the embedding, the LM head) is taken from `Params.target`.

  With `stop_below`, a probability, drafts end where `chains.continues` says so, and may be empty.

  Raises:
    Error: if gamma < 1, or stop_below is no probability above 0.
  """
  if gamma < 1:
    raise Error(f"A drafter drafts at least one token, got gamma = {gamma}.")
  stop_below = chains.stopping(stop_below)
  return Drafter(
      init=Partial(_init, head), read=Partial(_read, head),
      propose=Partial(_propose, head, stop_below), observe=Partial(_observe, head), nodes=gamma,
      depth=gamma, abstains=stop_below is not None, siblings=CHAIN, captures=head.captures)


def _init(head: Head, params: Params, batch: int, capacity: int) -> FeatureState:
  del params
  return FeatureState(
      head.init(batch, capacity), jnp.zeros((batch, head.draft_vocab), jnp.float32),
      jnp.zeros((batch, head.hidden_size), head.dtype))


def _read(
    head: Head, params: Params, state: FeatureState, tokens: Array, features: Array, start: Array,
    count: Array) -> FeatureState:
  complete = record.complete(params.drafter, params.target)
  output = head.forward(
      complete, state.cache, jnp.maximum(tokens[:, 1:], 0), head.fuse(complete, features), start)
  last = jnp.maximum(count - 1, 0)[:, None, None]

  def newest(rows, before):
    row = jnp.take_along_axis(rows, last, axis=1)[:, 0]
    return jnp.where((count > 0)[:, None], row, before)

  return FeatureState(
      output.cache, newest(output.logits, state.logits), newest(output.hidden, state.hidden))


def _propose(
    head: Head, stop_below: Array | None, keys: Array, params: Params, state: FeatureState,
    context: Context) -> Proposal:
  complete = record.complete(params.drafter, params.target)

  def step(carry, tokens, depth):
    cache, hidden = carry
    output = head.forward(
        complete, cache, tokens[:, None], hidden[:, None], context.lengths - 1 + depth)
    logits = record.spread(complete, output.logits[:, 0], head.vocab_size)
    return logits, (output.cache, output.hidden[:, 0])

  logits = record.spread(complete, state.logits, head.vocab_size)
  draft, (cache, _) = chains.draw_chain(
      logits, step, (state.cache, state.hidden), keys, context.law, stop_below)
  return Proposal(draft, state._replace(cache=cache), context.cache)


def _observe(
    head: Head, params: Params, state: FeatureState, verdict: Verdict, features: Array,
    context: Context) -> FeatureState:
  return _read(head, params, state, *accepted.read_of(verdict, features, context))
