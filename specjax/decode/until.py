"""Decoding with an end that only the host can see, such as a stop string."""

from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from specjax.decode import commit
from specjax.decode.decoder import Decoder
from specjax.decode.loop import rounds
from specjax.decode.state import State
from specjax.stats import counts
from specjax.types import Array, Params, PyTree, Verdict


def run_until(
    decoder: Decoder, key: Array, params: Params | PyTree, state: State,
    ends: Callable[[int, list[int]], int | None]) -> tuple[State, counts.Counts]:
  """`run`, round by round from the host, with one more way for a row to end.

  Args:
    decoder, key, params, state: as in `run`; the state is donated.
    ends: (row, the tokens of its answer so far) -> how many of them to keep if the answer ends
      among them, else None. Called after every round that added tokens to the row; what lies beyond
      the end, in the same block, is neither kept nor counted.

  Returns:
    The state, whose `lengths` end where `ends` said, and the counts.

  Raises:
    NotFiniteError: as `generate`.
  """
  lengths = np.array(state.lengths)
  answers = [[] for _ in lengths]
  stats = counts.zeros(len(answers), decoder.drafter.depth)
  playing = rounds(decoder, key, params, state)
  finished = None
  while True:
    try:
      played = playing.send(finished)
    except StopIteration:
      break
    kept, finished = _append(answers, played.verdict, ends)
    verdict = commit.truncate(played.verdict, played.depths, kept)
    stats = _count(stats, verdict, played.depths, played.valid)
    state = played.state
  answered = np.array([len(answer) for answer in answers], np.int32)
  return state._replace(lengths=jnp.asarray(lengths + answered)), stats


def _append(
    answers: list[list[int]], verdict: Verdict, ends: Callable) -> tuple[Array, np.ndarray]:
  """Extends the answers by a round; the tokens kept int32[B], and which rows have ended bool[B]."""
  kept, ended = np.array(verdict.count), np.zeros(len(answers), bool)
  for row, (answer, new) in enumerate(zip(answers, np.asarray(verdict.tokens))):
    if kept[row] == 0:
      continue
    before = len(answer)
    answer.extend(new[:kept[row]].tolist())
    end = ends(row, answer)
    if end is not None:
      ended[row], kept[row] = True, max(end - before, 0)
      del answer[end:]
  return jnp.asarray(kept), ended


_count = jax.jit(counts.add)
