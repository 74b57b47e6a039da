"""Heads that each propose one token further ahead, from one hidden state of the target: Medusa.

Cai et al., ICML 2024, arXiv 2401.10774. No head knows what another proposed, so the tokens of a
draft are independent given the text, and `Draft.log_q` states exactly that.
"""

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.models.heads import medusa, record
from specjax.models.heads.medusa import MedusaConfig
from specjax.trees import accepted, chains
from specjax.types import (
    Array, CHAIN, Context, Drafter, Error, Params, Proposal, Static, Verdict)


def parallel_heads(config: MedusaConfig, gamma: int) -> Drafter:
  """Drafts chains of `gamma` tokens, one from each of the first heads.

  The state is the target's hidden state for the last token that it read, zeros before it read any.

  Raises:
    Error: gamma is not in 1 .. the number of heads.
  """
  if not 1 <= gamma <= config.heads:
    raise Error(f"Medusa with {config.heads} heads drafts 1 to {config.heads} tokens, got {gamma}.")
  return Drafter(
      init=Partial(Static(_init, config)), read=Partial(_read),
      propose=Partial(Static(_propose, config)), observe=Partial(_observe), nodes=gamma,
      depth=gamma, abstains=False, siblings=CHAIN, captures=config.captures)


def _init(config: MedusaConfig, params: Params, batch: int, capacity: int) -> Array:
  del params, capacity
  return jnp.zeros((batch, config.hidden_size), config.dtype)


def _read(
    params: Params, state: Array, tokens: Array, features: Array, start: Array, count: Array
) -> Array:
  del params, tokens, start
  last = jnp.maximum(count - 1, 0)[:, None, None]
  newest = jnp.take_along_axis(features[:, :, 0], last, axis=1)[:, 0]
  return jnp.where((count > 0)[:, None], newest.astype(state.dtype), state)


def _propose(
    config: MedusaConfig, keys: Array, params: Params, state: Array, context: Context) -> Proposal:
  complete = record.complete(params.drafter, params.target)
  logits = medusa.logits(config, complete, state)
  step = lambda carry, tokens, depth: (logits[:, depth + 1], carry)
  draft, _ = chains.draw_chain(logits[:, 0], step, (), keys, context.law)
  return Proposal(draft, state, context.cache)


def _observe(
    params: Params, state: Array, verdict: Verdict, features: Array, context: Context) -> Array:
  return _read(params, state, *accepted.read_of(verdict, features, context))
