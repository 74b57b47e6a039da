"""A second, smaller model as the drafter.

Leviathan, Kalman, Matias, ICML 2023, arXiv 2211.17192; Chen et al. 2023, arXiv 2302.01318.
"""

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.trees import chains
from specjax.types import (
    Array, CHAIN, Context, Drafter, Error, Params, Proposal, PyTree, Target)


def second_model(model: Target, gamma: int, stop_below: float | None = None) -> Drafter:
  """Drafts chains of `gamma` tokens with `model`, whose parameters are `Params.drafter`.

  The state is the model's own cache. It may lack the last two committed tokens (the last drafted
  one was never fed, the bonus token never drafted), so every draft starts by feeding both: one pass
  of two tokens, whatever was accepted.

  With `stop_below`, a probability, drafts end where `chains.continues` says so, and may be empty.

  Raises:
    Error: if gamma < 1, or stop_below is no probability above 0.
  """
  if gamma < 1:
    raise Error(f"A drafter drafts at least one token, got gamma = {gamma}.")
  stop_below = chains.stopping(stop_below)
  return Drafter(
      init=Partial(_init, model), read=Partial(_read, model),
      propose=Partial(_propose, model, stop_below), nodes=gamma, depth=gamma,
      abstains=stop_below is not None, siblings=CHAIN)


def _init(model: Target, params: Params, batch: int, capacity: int) -> PyTree:
  return model.init(params.drafter, batch, capacity)


def _read(
    model: Target, params: Params, cache: PyTree, tokens: Array, features: Array | None,
    start: Array, count: Array) -> PyTree:
  del features, count  # entries behind the text are overwritten before they can be seen
  return model.forward(params.drafter, cache, jnp.maximum(tokens[:, :-1], 0), start).cache


def _propose(
    model: Target, stop_below: Array | None, keys: Array, params: Params, cache: PyTree,
    context: Context) -> Proposal:
  start = jnp.maximum(context.lengths - 2, 0)
  places = start[:, None] + jnp.arange(2)[None, :]
  # A text of one token is followed by PAD here: its entry is overwritten before it can be seen.
  pair = jnp.maximum(jnp.take_along_axis(context.tokens, places, axis=1), 0)
  output = model.forward(params.drafter, cache, pair, start)
  last = (context.lengths - 1 - start)[:, None, None]
  logits = jnp.take_along_axis(output.logits, last, axis=1)[:, 0]

  def step(cache, tokens, depth):
    output = model.forward(params.drafter, cache, tokens[:, None], context.lengths + depth)
    return output.logits[:, 0], output.cache

  draft, cache = chains.draw_chain(logits, step, output.cache, keys, context.law, stop_below)
  return Proposal(draft, cache, context.cache)
