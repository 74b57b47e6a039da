"""What passes, drafts and rounds cost on this device, measured; the inputs of a prediction."""

import functools
import math
from typing import Callable, Iterable

import jax
import jax.numpy as jnp
from jax import lax

from specjax import decode, theory
from specjax.decode import Decoder, State
from specjax.measure import stub, timing
from specjax.trees import masks
from specjax.types import Array, Draft, Params, PyTree, Target

WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
_REPEATS = 5
_PASSES = 4  # of one measurement
_ROUNDS = 32  # at least, of one measurement without models


def measure(
    decoder: Decoder, params: Params, prompts: list[list[int]], max_new_tokens: int,
    widths: Iterable[int]) -> theory.Costs:
  """Costs of passes and drafts: medians of interleaved runs, compilation excluded.

  Overheads are left at 0; `with_overheads` adds them.

  Args:
    decoder: a speculative decoder.
    params: its parameters.
    prompts: the rows that are decoded together, the context that passes look at.
    max_new_tokens: of the answers, for which the cache has room.
    widths: the n of V(n). In strict mode every pass has one width, and V is 1 up to it.
  """
  state = decoder.init(params, *decode.pad(prompts), max_new_tokens=max_new_tokens)
  held = dict(cache=state.cache, drafter=state.drafter)
  state = state._replace(cache=None, drafter=None)
  passes = (decoder.window,) if decoder.window else sorted({1, *widths})

  def time_width(width):
    place = jnp.minimum(state.lengths - 1, state.tokens.shape[1] - width)
    last = jnp.take_along_axis(state.tokens, state.lengths[:, None] - 1, axis=1)
    seconds, held["cache"] = time_pass(
        decoder.target, params.target, held["cache"], jnp.repeat(last, width, axis=1), place)
    return seconds

  def time_draft():
    (held["cache"], held["drafter"], steps), seconds = timing.timed(
        _run_drafts, decoder, params, held["cache"], held["drafter"], state)
    return seconds / int(steps)

  parts = {width: functools.partial(time_width, width) for width in passes}
  seconds = timing.medians(timing.in_turn(parts | {"draft": time_draft}, _REPEATS))
  single = seconds[passes[0]]
  window = {width: seconds[width] / single for width in passes}
  if decoder.window:
    window = {width: 1.0 for width in range(1, decoder.window + 1)}
  return theory.Costs(
      single, window, seconds["draft"] / single, rows=state.tokens.shape[0])


def with_overheads(
    costs: theory.Costs, plain: Decoder, speculative: Decoder, params: Params,
    prompts: list[list[int]]) -> theory.Costs:
  """`costs`, and what a round of both decoders takes where passes and drafts are free."""
  start = lambda decoder: decoder.init(params, *decode.pad(prompts), max_new_tokens=_ROUNDS)
  drafting = stub.without_models(speculative)
  free = dict(
      plain=stub.without_models(plain),
      speculative=stub.with_fixed_draft(drafting, _any_draft(drafting, params, start(drafting))))
  parts = {name: functools.partial(_time_round, each, params, start) for name, each in free.items()}
  seconds = timing.medians(timing.in_turn(parts, _REPEATS))
  return costs._replace(
      overhead=seconds["speculative"] / costs.pass_seconds,
      plain_overhead=seconds["plain"] / costs.pass_seconds)


def time_pass(
    target: Target, params: PyTree, cache: PyTree, tokens: Array, lengths: Array
) -> tuple[float, PyTree]:
  """Seconds of a pass over tokens int32[B, T] behind `lengths` int32[B], and the cache after it.

  Passes run inside one jitted loop, as decoding runs them. The cache is donated.
  """
  cache, seconds = timing.timed(_run_passes, target, params, cache, tokens, lengths)
  return seconds / _PASSES, cache


@functools.partial(jax.jit, donate_argnums=2)
def _run_passes(
    target: Target, params: PyTree, cache: PyTree, tokens: Array, lengths: Array) -> PyTree:
  def one(_, carry):
    cache, tokens = carry
    output = target.forward(params, cache, tokens, lengths)
    # Whoever decodes reads all the logits; this makes the next pass wait for that.
    return output.cache, jnp.where(jnp.isnan(output.logits.max()), 0, tokens)

  return lax.fori_loop(0, _PASSES, one, (cache, tokens))[0]


@functools.partial(jax.jit, donate_argnums=(2, 3))
def _run_drafts(
    decoder: Decoder, params: Params, cache: PyTree, drafter: PyTree, state: State
) -> tuple[PyTree, PyTree, Array]:
  """The cache, the drafter's state, and the steps that it took in `_PASSES` drafts."""
  depth = decoder.drafter.depth

  def one(_, carry):
    cache, drafter, steps, lengths = carry
    held = state._replace(cache=cache, drafter=drafter, lengths=lengths)
    proposal = decoder.propose(jax.random.key(0), params, held)
    lengths = jnp.where(_after(proposal.draft), lengths, 1)
    return proposal.cache, proposal.state, steps + _steps(proposal.draft, depth), lengths

  return lax.fori_loop(0, _PASSES, one, (cache, drafter, jnp.int32(0), state.lengths))[:3]


def _after(draft: Draft) -> Array:
  """Always true; XLA cannot know it before the draft is computed, so the next draft waits."""
  read = (draft.tokens >= -1).all()
  return read if draft.log_q is None else read & ~jnp.isnan(draft.log_q.max())


def _steps(draft: Draft, depth: int) -> Array:
  """int32[]: the steps that made a batched draft, one a level.

  A draft that stops early has drawn one level in vain.
  """
  if draft.log_q is None:
    return jnp.int32(depth)
  if draft.tokens.shape[1] == depth:  # a chain
    return 1 + draft.valid[:, :-1].any(0).sum(dtype=jnp.int32)
  depths = jax.vmap(masks.window_depths)(draft.parents)[:, 1:, None]
  on_level = draft.valid[:, :, None] & (depths == jnp.arange(1, depth)[None, None, :])
  return 1 + on_level.any((0, 1)).sum(dtype=jnp.int32)


def _any_draft(decoder: Decoder, params: Params, state: State) -> Draft:
  """A full draft of the shape that the decoder's drafter makes, with laws if it states laws."""
  draft = jax.jit(Decoder.propose)(decoder, jax.random.key(0), params, state).draft
  log_q = draft.log_q
  if log_q is not None:
    log_q = jnp.full(log_q.shape, -math.log(log_q.shape[-1]), log_q.dtype)
  return Draft(
      jnp.zeros_like(draft.tokens), draft.parents, log_q, jnp.ones_like(draft.valid))


def _time_round(decoder: Decoder, params: Params, start: Callable[[Decoder], State]) -> float:
  """Seconds of one round, averaged over those of a short text."""
  state = jax.block_until_ready(start(decoder))
  (_, counts), seconds = timing.timed(decode.run, decoder, jax.random.key(0), params, state)
  return seconds / int(counts.rounds.max())
