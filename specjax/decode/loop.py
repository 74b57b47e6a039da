"""Whole generations: one jitted loop, or the same step driven from the host."""

import functools
from typing import Generator, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from specjax.decode.decoder import Decoder, Round, start
from specjax.decode.state import prepare, State
from specjax.stats import counts
from specjax.types import Array, Error, PAD, Params, PyTree


class NotFiniteError(Error, FloatingPointError):
  """Logits that are NaN or infinite, as those of broken weights are."""


class Generation(NamedTuple):
  """What was generated for B prompts, at most M = max_new_tokens tokens each."""

  tokens: Array  # int32[B, M], PAD-filled
  lengths: Array  # int32[B]
  stats: counts.Counts


def generate(
    decoder: Decoder, key: Array, params: Params | PyTree, prompts: Array, lengths: Array,
    max_new_tokens: int, eos=(), rows: Array | None = None) -> Generation:
  """Decodes until every row is done, in one jitted loop without host round trips.

  Arguments are those of `Decoder.init`, and `key`, the key of the whole generation. In strict mode
  the rows are decoded one after the other, since the width of a batch would change the bits.

  Raises:
    ValueError: for prompts that cannot be decoded (see `Decoder.init`).
    NotFiniteError: if the target or the drafter returned NaN or +inf logits, naming the row; no
      token is ever drawn from them.
  """
  prepared = prepare(
      decoder.target, decoder.room, prompts, lengths, max_new_tokens, eos, rows)
  if decoder.window and len(lengths) > 1:
    one = lambda row: generate(
        decoder, key, params, prompts[row], lengths[row], max_new_tokens, eos, prepared[3][row])
    alone = [one(slice(row, row + 1)) for row in range(len(lengths))]
    return jax.tree.map(lambda *rows: jnp.concatenate(rows), *alone)
  params = params if isinstance(params, Params) else Params(params)
  tokens, ends, failed, stats = _run(decoder, key, params, *prepared)
  check_finite(failed, ends)
  begins, ends, tokens = np.asarray(prepared[1]), np.asarray(ends), np.asarray(tokens)
  answers = np.full((len(begins), max_new_tokens), PAD, np.int32)
  for row, (begin, end) in enumerate(zip(begins, ends)):
    answers[row, :end - begin] = tokens[row, begin:end]
  return Generation(jnp.asarray(answers), jnp.asarray(ends - begins), stats)


def stream(
    decoder: Decoder, key: Array, params: Params | PyTree, prompts: Array, lengths: Array,
    max_new_tokens: int, eos=(), rows: Array | None = None) -> Generator[Round, Array | None, None]:
  """Yields each round as it is played, until every row is done; see `rounds`.

  Raises:
    As `generate`.
  """
  state = decoder.init(
      params, prompts, lengths, max_new_tokens=max_new_tokens, eos=eos, rows=rows)
  return rounds(decoder, key, params, state)


def rounds(
    decoder: Decoder, key: Array, params: Params | PyTree, state: State
) -> Generator[Round, Array | None, None]:
  """`step` driven from the host: yields each round as it is played, until every row is done.

  The state is donated, and so are the arrays of a yielded one to the next round: copy what should
  be kept. At least one round is played, an idle one if all rows are done. A caller that finds the
  end of a row by itself (a stop string, say) may `send` a bool[B] of rows to finish.

  Raises:
    NotFiniteError: as `generate`.
  """
  done = False
  while not done:
    played = _play(decoder, key, params, state)
    state = played.state
    check_finite(state.failed, state.lengths)
    finished = yield played
    if finished is not None:
      state = state._replace(done=state.done | jnp.asarray(finished))
    done = np.asarray(state.done).all()


def check_finite(failed: Array, lengths: Array) -> None:
  """Raises NotFiniteError if a row has failed."""
  for row in np.flatnonzero(np.asarray(failed)):
    raise NotFiniteError(
        f"Row {row}: the target or the drafter returned NaN or infinite logits for the token at "
        f"position {np.asarray(lengths)[row]}, so there is no law to draw from. "
        "Generation stopped.")


@functools.partial(jax.jit, donate_argnums=3)
def run(
    decoder: Decoder, key: Array, params: Params | PyTree, state: State
) -> tuple[State, counts.Counts]:
  """`step` folded until every row is done; what `generate` does once the prompts are read.

  The state is donated. Rows with NaN logits end with `failed` set: see `check_finite`.
  """
  def play(carry):
    state, stats = carry
    played = decoder.play(key, params, state)
    return played.state, counts.add(stats, played.verdict, played.depths, played.valid)

  zeros = counts.zeros(state.tokens.shape[0], decoder.drafter.depth)
  return lax.while_loop(lambda carry: ~carry[0].done.all(), play, (state, zeros))


@jax.jit
def _run(
    decoder: Decoder, key: Array, params: Params, tokens: Array, lengths: Array, limits: Array,
    rows: Array, eos: Array) -> tuple[Array, Array, Array, counts.Counts]:
  """(tokens int32[B, S], lengths int32[B], failed bool[B], counts) of the finished rows."""
  first = start(decoder, params, tokens, lengths, limits, rows, eos)
  state, stats = run(decoder, key, params, first)
  return state.tokens, state.lengths, state.failed, stats


@functools.partial(jax.jit, donate_argnums=3)
def _play(decoder: Decoder, key: Array, params: Params | PyTree, state: State) -> Round:
  return decoder.play(key, params, state)
