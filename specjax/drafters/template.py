"""The smallest complete drafter: a file to copy when you add your own.

Replace this text by one line that says how the tokens are guessed, and by its source (paper,
section, arXiv id). The drafter of this file remembers which token followed each token the last
time, and drafts along that memory.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.trees import accepted, chains
from specjax.types import (
    Array, Context, DETERMINISTIC, Drafter, Error, PAD, Params, Proposal, Verdict)

_BUCKETS = 4096  # tokens of one remainder share a memory; a wrong guess costs speed, never law


def template(model, gamma: int) -> Drafter:
  """Drafts `gamma` tokens, each the one that followed its predecessor last.

  Args:
    model: the loaded target, as `--config.drafter=MODULE:FUNCTION` hands it over. A drafter that
      needs the vocabulary, or the embedding, finds them there; this one needs nothing.
    gamma: tokens to draft, at least 1.

  Raises:
    Error: gamma < 1.
  """
  del model
  if gamma < 1:
    raise Error(f"A drafter drafts at least one token, got gamma = {gamma}.")
  # What you promise here is what the decoder and the rules take the drafter for.
  return Drafter(
      init=Partial(_init), read=Partial(_read), propose=Partial(_propose),
      observe=Partial(_observe), nodes=gamma, depth=gamma, abstains=True, siblings=DETERMINISTIC)


def _init(params: Params, batch: int, capacity: int) -> Array:
  """The state: int32[B, buckets], the successor of the last token of each bucket."""
  del params, capacity
  return jnp.full((batch, _BUCKETS), PAD, jnp.int32)


def _read(
    params: Params, memory: Array, tokens: Array, features: Array | None, start: Array,
    count: Array) -> Array:
  """The prompt, chunk by chunk: `count` tokens of each row, whose successors are known."""
  del params, features, start

  def remember(memory, pair):
    token, successor, place = pair
    buckets = jnp.where(place < count, token % _BUCKETS, _BUCKETS)  # out of range: dropped
    rows = jnp.arange(memory.shape[0])
    return memory.at[rows, buckets].set(successor, mode="drop"), None

  places = jnp.arange(tokens.shape[1] - 1)
  return lax.scan(remember, memory, (tokens[:, :-1].T, tokens[:, 1:].T, places))[0]


def _propose(keys: Array, params: Params, memory: Array, context: Context) -> Proposal:
  """One draft for every row. A drafter that samples draws depth d with `keys[:, d]`."""
  del params
  last = jnp.take_along_axis(context.tokens, context.lengths[:, None] - 1, axis=1)[:, 0]

  def follow(token, _):
    known = jnp.take_along_axis(memory, token[:, None] % _BUCKETS, axis=1)[:, 0]
    successor = jnp.where(token == PAD, PAD, known)
    return successor, successor

  tokens = lax.scan(follow, last, None, length=keys.shape[1])[1].T
  # `log_q` of a drafter that samples is the very law, from `context.law`, that each token was drawn
  # from; None says that nothing was drawn.
  return Proposal(chains.chain(tokens, None, tokens != PAD), memory, context.cache)


def _observe(
    params: Params, memory: Array, verdict: Verdict, features: Array | None, context: Context
) -> Array:
  """The outcome of a round: what was kept is text like any other."""
  return _read(params, memory, *accepted.read_of(verdict, features, context))
