"""Generation with an end that only the host can see, such as a stop string."""

from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from specjax.decode import commit
from specjax.decode.decoder import Decoder
from specjax.decode.loop import Generation, stream
from specjax.stats import counts
from specjax.types import Array, PAD, Params, PyTree


def generate_until(
    decoder: Decoder, key: Array, params: Params | PyTree, prompts: Array, lengths: Array,
    max_new_tokens: int, ends: Callable[[int, list[int]], int | None], eos=(),
    rows: Array | None = None) -> Generation:
  """`generate`, round by round from the host, with one more way for a row to end.

  Args:
    ends: (row, the tokens of its answer so far) -> how many of them to keep if the answer ends among
      them, else None. Called after every round that added tokens to the row; what lies beyond the
      end, in the same block, is neither kept nor counted.
    Others as in `generate`.

  Raises:
    As `generate`.
  """
  answers = [[] for _ in lengths]
  stats = counts.zeros(len(answers), decoder.drafter.depth)
  rounds = stream(decoder, key, params, prompts, lengths, max_new_tokens, eos, rows)
  finished = None
  while True:
    try:
      played = rounds.send(finished)
    except StopIteration:
      break
    kept, finished = _append(answers, played.verdict, ends)
    stats = _count(stats, commit.truncate(played.verdict, played.depths, kept), played.depths)
  tokens = np.full((len(answers), max_new_tokens), PAD, np.int32)
  for row, answer in enumerate(answers):
    tokens[row, :len(answer)] = answer
  return Generation(jnp.asarray(tokens), jnp.asarray([len(a) for a in answers], jnp.int32), stats)


def _append(answers, verdict, ends) -> tuple[Array, np.ndarray]:
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
