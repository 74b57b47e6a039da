"""From a verdict to the text: what is kept, and where it is written."""

import jax.numpy as jnp

from specjax.decode.state import State
from specjax.types import Array, PAD, Verdict


def cut(verdict: Verdict, state: State, depths: Array) -> Verdict:
  """Keeps what may stand in the text: nothing of a finished row, nothing beyond EOS or the limit.

  Args:
    verdict: batched.
    state: before the round.
    depths: int32[B, N], the depth of each drafted node; nodes beyond the cut were never judged
      as far as the text is concerned.
  """
  place = jnp.arange(verdict.tokens.shape[1])[None, :]
  room = state.limits - state.lengths
  ends = ((verdict.tokens[:, :, None] == state.eos[None, None, :]).any(-1)
          & (place < verdict.count[:, None]))
  until_eos = jnp.where(ends.any(-1), jnp.argmax(ends, -1) + 1, verdict.count)
  count = jnp.minimum(jnp.minimum(until_eos, room), verdict.count).astype(jnp.int32)
  return truncate(verdict, depths, jnp.where(state.done, 0, count))


def truncate(verdict: Verdict, depths: Array, count: Array) -> Verdict:
  """The verdict of which only the first `count` int32[B] tokens stand in the text."""
  place = jnp.arange(verdict.tokens.shape[1])[None, :]
  kept = count[:, None]
  return Verdict(
      tokens=jnp.where(place < kept, verdict.tokens, PAD),
      count=count,
      path=jnp.where(place[:, :-1] < kept, verdict.path, PAD),
      tested=verdict.tested & (depths < kept),
      accepted=verdict.accepted & (depths < kept))


def commit(state: State, verdict: Verdict) -> State:
  """Writes the tokens of a verdict that was `cut` behind the text, and marks finished rows."""
  place = jnp.arange(verdict.tokens.shape[1])[None, :]
  batch, size = state.tokens.shape
  slots = jnp.where(
      place < verdict.count[:, None], state.lengths[:, None] + place, size)  # out of range: dropped
  tokens = state.tokens.at[jnp.arange(batch)[:, None], slots].set(verdict.tokens, mode="drop")
  lengths = state.lengths + verdict.count
  ended = (verdict.tokens[:, :, None] == state.eos[None, None, :]).any((-2, -1))
  return state._replace(
      tokens=tokens, lengths=lengths, round=state.round + 1,
      done=state.done | ended | (lengths >= state.limits))
