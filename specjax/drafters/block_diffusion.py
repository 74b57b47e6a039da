"""A block of tokens in one pass over the target's features: DFlash and DSpark.

DFlash (Chen, Liang, Liu, ICML 2026, arXiv 2602.06036) fills all places of the block at once, so the
tokens of a draft are independent given the text. DSpark (arXiv 2607.05147) corrects each place by
the token drafted before it. `Draft.log_q` states either exactly.
"""

import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.models import cache as cache_lib
from specjax.models.cache import Cache
from specjax.models.heads import dflash, record
from specjax.models.heads.dflash import DFlashConfig
from specjax.trees import accepted, chains
from specjax.types import (
    Array, CHAIN, Context, Drafter, Error, Params, Proposal, Static, Verdict)


def block_diffusion(config: DFlashConfig, gamma: int) -> Drafter:
  """Drafts chains of the first `gamma` tokens of a block, which is always a whole one.

  The state holds keys and values of the features that the target has for the text; those of the
  block stand behind them until they are overwritten.

  Raises:
    Error: gamma is not in 1 .. the tokens that a block drafts.
  """
  if not 1 <= gamma <= config.drafts:
    raise Error(
        f"A block of {config.block_size} rows drafts 1 to {config.drafts} tokens, got {gamma}.")
  return Drafter(
      init=Partial(Static(_init, config)), read=Partial(Static(_read, config)),
      propose=Partial(Static(_propose, config)), observe=Partial(Static(_observe, config)),
      nodes=gamma, depth=gamma, abstains=False, siblings=CHAIN, captures=config.captures)


def _init(config: DFlashConfig, params: Params, batch: int, capacity: int) -> Cache:
  del params
  return cache_lib.empty(config.layer, batch, capacity + config.block_size)


def _read(
    config: DFlashConfig, params: Params, cache: Cache, tokens: Array, features: Array,
    start: Array, count: Array) -> Cache:
  del tokens, count  # entries behind the text are overwritten before they can be seen
  complete = record.complete(params.drafter, params.target)
  return dflash.apply(config, "read", complete, cache, features, start)


def _propose(
    config: DFlashConfig, keys: Array, params: Params, cache: Cache, context: Context) -> Proposal:
  complete = record.complete(params.drafter, params.target)
  anchor = jnp.take_along_axis(context.tokens, context.lengths[:, None] - 1, axis=1)[:, 0]
  block = dflash.apply(config, "draft", complete, cache, anchor, context.lengths - 1)

  def logits(previous, place):
    """Of the place in the block, over the target's vocabulary."""
    row = block.logits[:, place]
    if config.markov_rank:
      row = dflash.apply(config, "correct", complete, row, previous)
    return record.spread(complete, row, config.layer.vocab_size)

  step = lambda carry, tokens, depth: (logits(tokens, depth + 1), carry)
  draft, _ = chains.draw_chain(logits(anchor, 0), step, (), keys, context.law)
  return Proposal(draft, block.cache, context.cache)


def _observe(
    config: DFlashConfig, params: Params, cache: Cache, verdict: Verdict, features: Array,
    context: Context) -> Cache:
  return _read(config, params, cache, *accepted.read_of(verdict, features, context))
