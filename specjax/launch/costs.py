"""What one draft step and one wide target pass cost, measured; the inputs of a prediction."""

import statistics
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp

from specjax import keys, logits
from specjax.decode import Decoder, State
from specjax.types import Context, Params

_REPEATS = 9


class Costs(NamedTuple):
  """Times relative to one target pass of plain decoding: a single row, or the strict window."""

  pass_seconds: float  # that pass itself
  window: float  # V(gamma + 1): the pass that scores a draft
  draft_step: float  # c: one draft step


def measure(decoder: Decoder, params: Params, state: State) -> Costs:
  """Medians of interleaved runs, compilation excluded. The state is consumed.

  Args:
    decoder: a speculative decoder, gamma >= 1.
    params: its parameters.
    state: a fresh state of `decoder`; its prompts are the context that passes look at.
  """
  gamma = decoder.drafter.nodes
  place = state.lengths - 1
  last = jnp.take_along_axis(state.tokens, place[:, None], axis=1)
  one = jnp.repeat(last, decoder.window or 1, axis=1)
  window = jnp.repeat(last, decoder.window or gamma + 1, axis=1)
  forward = jax.jit(_forward, donate_argnums=2)
  propose = jax.jit(_propose, donate_argnums=2)
  draft_keys = keys.draft(jax.random.key(0), state.rows, state.round, decoder.drafter.depth)
  # Each takes the cache and gives it back, so that it is updated in place as in a real round.
  parts = [
      lambda cache: forward(decoder, params, cache, one, place),
      lambda cache: forward(decoder, params, cache, window, place),
      lambda cache: propose(decoder, params, cache, draft_keys, state._replace(cache=None))]
  cache, times = state.cache, [[] for _ in parts]
  for repeat in range(_REPEATS + 1):
    for part, seconds in zip(parts, times):
      begin = time.perf_counter()
      cache, result = part(cache)
      jax.block_until_ready(result)
      if repeat:  # the first round compiles
        seconds.append(time.perf_counter() - begin)
  single, wide, draft = (statistics.median(seconds) for seconds in times)
  return Costs(single, wide / single, draft / gamma / single)


def _forward(decoder, params, cache, tokens, lengths):
  output = decoder.target.forward(params.target, cache, tokens, lengths, None, None)
  return output.cache, output.logits


def _propose(decoder, params, cache, draft_keys, state):
  law = lambda scores, drafted: logits.log_law(scores, decoder.transform)
  context = Context(state.tokens, state.lengths, cache, law)
  proposal = decoder.drafter.propose(draft_keys, params, state.drafter, context)
  return proposal.cache, proposal.draft
