"""What a wide pass of the target costs, and what a round costs besides passes.

V(n) is measured inside one jitted loop, as decoding runs it, over a real context. The time outside of
passes is that of the very decoding loop with every model in it replaced by a table of logits: law,
transform, drafting, verification and commit are all that is left of such a round.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
import numpy as np

from experiments.benchmarks import timing
from specjax import decode
from specjax.launch.play import pad
from specjax.types import Array, Output, Params, PyTree, Target

WIDTHS = (1, 2, 4, 8, 16)
_PASSES = 8  # of one measurement
_TOKENS = 48  # decoded in one measurement of real rounds
_STUB_TOKENS = 256  # the same without models, where a round is short
_PERIOD = 16  # the table repeats a text of so many tokens, which every drafter guesses


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
  stubs = {name: (without_models(decoder), params) for name, (decoder, params) in decoders.items()}
  cycle = [i % _PERIOD for i in range(len(prompt))]
  drafting = {}
  for name, (decoder, params) in decoders.items():
    drafting[name] = _drafting(_decode(decoder, key, params, prompt, _TOKENS)[1])
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


def without_models(decoder: decode.Decoder) -> decode.Decoder:
  """The decoder with a table of logits in place of every model, its drafter's included."""
  is_target = lambda node: isinstance(node, Target)
  stub = lambda node: _stub(node) if is_target(node) else node
  return jax.tree.map(stub, decoder, is_leaf=is_target)


def _stub(target: Target) -> Target:
  scores = np.random.default_rng(0).normal(size=(_PERIOD, target.vocab_size)).astype(np.float32)
  place = np.arange(_PERIOD)
  scores[place, (place + 1) % _PERIOD] = 20
  return Target(
      init=Partial(_no_cache), forward=Partial(_look_up, jnp.asarray(scores)),
      commit=Partial(_no_commit), vocab_size=target.vocab_size, max_length=None)


def _no_cache(params: PyTree, batch: int, capacity: int) -> tuple:
  del params, batch, capacity
  return ()


def _look_up(scores, params, cache, tokens, lengths, depths, mask) -> Output:
  del params, lengths, depths, mask
  # The barrier makes the logits an array, as those of a model are, that consumers read again.
  return Output(lax.optimization_barrier(scores[tokens % _PERIOD]), None, cache)


def _no_commit(cache: tuple, lengths: Array, path: Array) -> tuple:
  del lengths, path
  return cache


def _time_passes(decoder: decode.Decoder, params: Params, prompt: list[int], width: int) -> float:
  """Seconds of one pass over `width` rows behind the prompt."""
  padded, lengths = pad([prompt])
  state = jax.block_until_ready(decoder.init(
      params, padded, lengths, max_new_tokens=_PASSES * max(WIDTHS)))
  tokens = jnp.full((1, width), prompt[-1], jnp.int32)
  return timing.seconds_of(
      _run_passes, decoder.target, params.target, state.cache, tokens, state.lengths - 1) / _PASSES


@functools.partial(jax.jit, donate_argnums=2)
def _run_passes(
    target: Target, params: PyTree, cache: PyTree, tokens: Array, start: Array
) -> tuple[PyTree, Array]:
  def one(index, carry):
    cache, tokens = carry
    lengths = start + index * tokens.shape[1]
    output = target.forward(params, cache, tokens, lengths, None, None)
    # Whoever decodes reads all the logits; this makes the next pass wait for that.
    return output.cache, jnp.where(jnp.isnan(output.logits.max()), 0, tokens)

  return lax.fori_loop(0, _PASSES, one, (cache, tokens))


def _time_round(decoder, key, params, prompt, tokens) -> float:
  """Seconds of one round, averaged over those that make `tokens` tokens."""
  seconds, counts = _decode(decoder, key, params, prompt, tokens)
  return seconds / int(counts.rounds[0])


def _decode(decoder, key, params, prompt, tokens):
  padded, lengths = pad([prompt])
  state = jax.block_until_ready(decoder.init(params, padded, lengths, max_new_tokens=tokens))
  done = []
  seconds = timing.seconds_of(lambda: done.append(decode.run(decoder, key, params, state)) or done)
  return seconds, done[0][1]


def _drafting(counts) -> float:
  """The part of the rounds whose first drafted token was judged; 0 for plain decoding."""
  return float(counts.tested[0, 0] / counts.rounds[0]) if counts.tested.shape[1] else 0.0
