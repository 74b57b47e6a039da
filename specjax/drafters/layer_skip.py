"""The target's own first layers as the drafter: no second copy of weights, one shared cache.

The inference scheme of LayerSkip (Elhoushi et al., ACL 2024, arXiv 2404.16710, section 4.3). A
target that was not trained for early exit drafts poorly; the scheme is exact all the same.
"""

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.trees import chains
from specjax.types import Array, CHAIN, Context, Drafter, Error, Params, Proposal, Target


def layer_skip(exit_model: Target, gamma: int, stop_below: float | None = None) -> Drafter:
  """Drafts chains of `gamma` tokens with `exit_model`, an early exit of the target.

  `exit_model` must read the target's parameters and write the target's cache
  (`models.transformer.early_exit`). What it writes beyond the committed text is overwritten
  when the target scores the draft.

  With `stop_below`, a probability, drafts end where `chains.continues` says so, and may be empty.

  Raises:
    Error: if gamma < 1, or stop_below is no probability above 0.
  """
  if gamma < 1:
    raise Error(f"A drafter drafts at least one token, got gamma = {gamma}.")
  stop_below = chains.stopping(stop_below)
  return Drafter(
      propose=Partial(_propose, exit_model, stop_below), nodes=gamma, depth=gamma,
      abstains=stop_below is not None, siblings=CHAIN)


def _propose(
    exit_model: Target, stop_below: Array | None, keys: Array, params: Params, state: tuple,
    context: Context) -> Proposal:
  def feed(cache, tokens, lengths):
    output = exit_model.forward(params.target, cache, tokens[:, None], lengths)
    return output.logits[:, 0], output.cache

  last = jnp.take_along_axis(context.tokens, context.lengths[:, None] - 1, axis=1)[:, 0]
  logits, cache = feed(context.cache, last, context.lengths - 1)

  def step(cache, tokens, depth):
    return feed(cache, tokens, context.lengths + depth)

  draft, cache = chains.draw_chain(logits, step, cache, keys, context.law, stop_below)
  return Proposal(draft, state, cache)
