"""Lists of token ids in, lists of token ids out: the way from prompts to arrays and back."""

import time
from typing import Callable, NamedTuple, Sequence

import jax
import numpy as np

from specjax.decode import loop
from specjax.decode.decoder import Decoder
from specjax.decode.state import State
from specjax.stats.counts import Counts
from specjax.types import Array, Error, PAD, Params, PyTree


class Batch(NamedTuple):
  """What B prompts that were decoded together gave."""

  tokens: list[list[int]]  # the answers, one list a prompt
  counts: Counts  # numpy
  seconds: float  # of the rounds; neither the reading of the prompts nor compilation is in it
  state: State  # the last one


def pad(prompts: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
  """The prompts int32[B, P], PAD-filled, and their lengths int32[B].

  Raises:
    Error: there is no prompt.
  """
  if not len(prompts):
    raise Error("There are no prompts: give at least one list of token ids.")
  lengths = np.array([len(prompt) for prompt in prompts], np.int32)
  padded = np.full((len(prompts), lengths.max()), PAD, np.int32)
  for row, prompt in enumerate(prompts):
    padded[row, :len(prompt)] = prompt
  return padded, lengths


def run_batch(
    decoder: Decoder, key: Array, params: Params | PyTree, prompts: Sequence[Sequence[int]],
    max_new_tokens: int, *, eos=(), rows: Sequence[int] | None = None,
    run: Callable[..., tuple[State, Counts]] = loop.run) -> Batch:
  """Decodes lists of token ids and takes the time of the rounds.

  Args:
    decoder: in strict mode it takes one prompt.
    key: of the whole generation.
    params: as `Decoder.init` takes them.
    prompts: of any lengths.
    max_new_tokens: of each answer.
    eos: tokens that end an answer.
    rows: row ids, 0 .. B - 1 if not given.
    run: the loop, `decode.run` or one with its arguments and results.

  Raises:
    Error: as `pad` and `Decoder.init`.
    FloatingPointError: as `generate`.
  """
  padded, begins = pad(prompts)
  ids = None if rows is None else np.asarray(rows, np.int32)
  state = decoder.init(
      params, padded, begins, max_new_tokens=max_new_tokens, eos=eos, rows=ids)
  state = _compile(run, decoder, key, params, state)
  begin = time.perf_counter()
  state, counts = jax.block_until_ready(run(decoder, key, params, state))
  seconds = time.perf_counter() - begin
  loop.check_finite(state.failed, state.lengths)
  ends, tokens = np.asarray(state.lengths), np.asarray(state.tokens)
  answers = [tokens[row, begins[row]:ends[row]].tolist() for row in range(len(begins))]
  return Batch(answers, jax.tree.map(np.asarray, counts), seconds, state)


def _compile(run, decoder: Decoder, key: Array, params: Params | PyTree, state: State) -> State:
  """The same state, `run` compiled: a state whose rows are done comes back as it was."""
  state = jax.block_until_ready(state)
  first, done = state.round, state.done
  idle, _ = run(decoder, key, params, state._replace(done=done | True, round=first + 0))
  return jax.block_until_ready(idle._replace(done=done, round=first))
