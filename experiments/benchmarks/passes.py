"""What a wide pass of the target costs, and what a round costs besides passes.

V(n) is measured inside one jitted loop, as decoding runs it, over a real context. The time outside
of passes is that of the very decoding loop with every model in it replaced by a table of logits:
law, transform, drafting, verification and commit are all that is left of such a round.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from specjax import decode
from specjax.measure import costs, stub, timing
from specjax.types import Array, Params

WIDTHS = (1, 2, 4, 8, 16)
_TOKENS = 48  # decoded in one measurement of real rounds
_STUB_TOKENS = 256  # the same without models, where a round is short


class Round(NamedTuple):
  """A round of one decoder, in seconds."""

  round: float  # measured as a whole
  outside: float  # measured without models
  drafting: float  # the part of the rounds that had a draft
  fraction: float  # outside / round


class Passes(NamedTuple):
  """The section's result."""

  seconds: dict[int, float]  # of a pass over n rows
  relative: dict[int, float]  # V(n)
  rounds: dict[str, Round]


def measure(
    decoders: dict[str, tuple[decode.Decoder, Params]], key: Array, prompt: list[int],
    repeats: int) -> Passes:
  """Measures passes of the target and rounds of every decoder, all in turn.

  Args:
    decoders: by name, with their parameters; all share one target.
    key: of the decoding.
    prompt: the context.
    repeats: measurements of which the median counts.
  """
  decoder, params = next(iter(decoders.values()))
  parts = {n: functools.partial(_time_passes, decoder, params, prompt, n) for n in WIDTHS}
  stubs = {
      name: (stub.without_models(decoder), params) for name, (decoder, params) in decoders.items()}
  cycle = [i % stub.PERIOD for i in range(len(prompt))]
  drafting = {}
  for name, (decoder, params) in decoders.items():
    drafting[name] = _drafting(decoder, key, params, prompt)
    parts["round", name] = functools.partial(_time_round, decoder, key, params, prompt, _TOKENS)
    parts["outside", name] = functools.partial(
        _time_round, stubs[name][0], key, params, cycle, _STUB_TOKENS)
  seconds = timing.medians(timing.in_turn(parts, repeats))
  rounds = {}
  for name in decoders:
    whole, outside = seconds["round", name], seconds["outside", name]
    rounds[name] = Round(whole, outside, drafting[name], outside / whole)
  return Passes(
      {n: seconds[n] for n in WIDTHS}, {n: seconds[n] / seconds[1] for n in WIDTHS}, rounds)


def _time_passes(decoder: decode.Decoder, params: Params, prompt: list[int], width: int) -> float:
  """Seconds of one pass over `width` rows behind the prompt."""
  state = jax.block_until_ready(decoder.init(
      params, *decode.pad([prompt]), max_new_tokens=max(WIDTHS)))
  tokens = jnp.full((1, width), prompt[-1], jnp.int32)
  seconds, _ = costs.time_pass(
      decoder.target, params.target, state.cache, tokens, state.lengths - 1)
  return seconds


def _time_round(decoder, key, params, prompt, tokens) -> float:
  """Seconds of one round, averaged over those that make `tokens` tokens."""
  batch = decode.run_batch(decoder, key, params, [prompt], tokens)
  return batch.seconds / int(batch.counts.rounds[0])


def _drafting(decoder, key, params, prompt) -> float:
  """The part of the rounds that had a draft."""
  counts = decode.run_batch(decoder, key, params, [prompt], _TOKENS).counts
  return float(counts.drafting[0] / counts.rounds[0])
