"""Prompt lookup: what followed the last tokens the previous time they were seen.

Saxena 2023 ("prompt lookup decoding"); the draft is a copy, hence a point mass, and costs nothing.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.trees import chains
from specjax.types import (
    Array, Context, DETERMINISTIC, Drafter, Error, Params, Proposal, Static)


def ngram(gamma: int, longest: int = 3, shortest: int = 2) -> Drafter:
  """Drafts `gamma` tokens by matching the last `longest` .. `shortest` tokens with earlier text.

  The longest match wins, the latest among equals. Where the copy reaches the end of the text it
  goes on with its own beginning, so a repetition is continued for as long as the draft. Without a
  match the draft is empty (`valid` is false everywhere). Matches of a single token are mostly
  chance, and scoring their drafts costs more than they bring where a wide pass is not free.

  Raises:
    Error: if gamma < 1 or not 1 <= shortest <= longest.
  """
  if gamma < 1:
    raise Error(f"A drafter drafts at least one token, got gamma = {gamma}.")
  if not 1 <= shortest <= longest:
    raise Error(f"ngram needs 1 <= shortest <= longest, got {shortest} and {longest}.")
  return Drafter(
      propose=Partial(Static(_propose, longest, shortest)), nodes=gamma, depth=gamma,
      abstains=True, siblings=DETERMINISTIC)


def _propose(
    longest: int, shortest: int, keys: Array, params: Params, state: tuple, context: Context
) -> Proposal:
  del params

  def copy(text, length):
    return _copy(text, length, keys.shape[1], longest, shortest)

  tokens, found = jax.vmap(copy)(context.tokens, context.lengths)
  valid = jnp.broadcast_to(found[:, None], tokens.shape)
  return Proposal(chains.chain(tokens, None, valid), state, context.cache)


def _copy(
    text: Array, length: Array, gamma: int, longest: int, shortest: int) -> tuple[Array, Array]:
  """The tokens int32[gamma] behind the best match in text int32[S], and whether there is one."""
  ends = jnp.arange(text.shape[0])  # a match ends just before this place
  matched = jnp.zeros_like(ends)
  alive = (ends >= 1) & (ends < length)
  for back in range(1, longest + 1):
    alive &= (ends >= back) & (jnp.roll(text, back) == text[length - back])
    matched += alive.astype(jnp.int32)
  # The longest match first, then the latest.
  best = jnp.argmax(matched * text.shape[0] + jnp.where(matched > 0, ends, 0))
  period = jnp.maximum(length - best, 1)
  return text[best + jnp.arange(gamma) % period], matched[best] >= shortest
