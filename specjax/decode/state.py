"""What a decoder remembers between rounds, and the checks before the first one."""

import numbers
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from specjax.decode import prefill
from specjax.types import Array, Error, PAD, PyTree, Target

_MIN_CAPACITY = 512  # tokens; a floor keeps the capacities, hence compilations, few


class State(NamedTuple):
  """The state of B rows with room for S tokens each; lengths are per row."""

  tokens: Array  # int32[B, S]: prompt and generated text, PAD after it
  lengths: Array  # int32[B]: committed tokens
  limits: Array  # int32[B]: the length at which a row is finished
  eos: Array  # int32[E]: tokens that end a row; the first one emitted is kept
  rows: Array  # int32[B]: row ids, on which randomness depends
  round: Array  # int32[]: rounds played
  done: Array  # bool[B]
  failed: Array  # bool[B]: met a law that is not one (NaN logits); the row stopped before using it
  cache: PyTree  # the target's; holds the first lengths - 1 tokens
  drafter: PyTree


def capacity(tokens: int, room: int) -> int:
  """The bucket, in tokens, that holds a text of `tokens` and `room` more slots after it.

  Powers of two, so that prompts of many lengths share a compilation.
  """
  size = _MIN_CAPACITY
  while size < tokens + room:
    size *= 2
  assert size % prefill.CHUNK == 0
  return size


def prepare(
    target: Target, room: int, prompts: Array, lengths: Array, max_new_tokens: int, eos,
    rows: Array | None) -> tuple[Array, Array, Array, Array, Array]:
  """Checks and pads what `Decoder.init` is given.

  Returns:
    tokens int32[B, S], lengths, limits, rows int32[B], eos int32[E].
  """
  _check_prompts(prompts, lengths, target.vocab_size, target.max_length)
  if not isinstance(max_new_tokens, numbers.Integral) or max_new_tokens < 1:
    raise Error(f"max_new_tokens must be an integer of at least 1, got {max_new_tokens!r}.")
  prompts, lengths = np.asarray(prompts, np.int32), np.asarray(lengths, np.int32)
  limits = lengths.astype(np.int64) + max_new_tokens
  if target.max_length is not None:
    limits = np.minimum(limits, target.max_length)
  batch = prompts.shape[0]
  size = capacity(int(limits.max()), room)
  tokens = np.full((batch, size), PAD, np.int32)
  for row, length in enumerate(lengths):
    tokens[row, :length] = prompts[row, :length]
  rows = np.arange(batch) if rows is None else np.asarray(rows)
  if rows.shape != (batch,) or not np.issubdtype(rows.dtype, np.integer):
    raise Error(
        f"rows must be int32[{batch}], one id a prompt, got {rows.dtype}{rows.shape}.")
  arrays = (tokens, lengths, limits, rows, _ends(eos, target.vocab_size))
  return tuple(jnp.asarray(array, jnp.int32) for array in arrays)


def _ends(eos, vocab_size: int) -> np.ndarray:
  """int[E]: the tokens that end a row. PAD is none of them: it fills every verdict."""
  ends = np.asarray(tuple(eos) if np.iterable(eos) else eos)
  if ends.size == 0:
    return np.zeros(0, int)
  if ends.ndim != 1 or not np.issubdtype(ends.dtype, np.integer):
    raise Error(f"eos must be tokens int[E], such as (2,), got {eos!r}.")
  if ends.min() < 0 or ends.max() >= vocab_size:
    raise Error(
        f"eos {ends.tolist()} holds a token outside of the vocabulary of {vocab_size}; () is none.")
  return ends


def _check_prompts(
    prompts: Array, lengths: Array, vocab_size: int, max_length: int | None) -> None:
  if isinstance(prompts, jax.core.Tracer) or isinstance(lengths, jax.core.Tracer):
    raise Error(
        "decode checks prompts and lengths before it compiles anything, so they must be concrete "
        "arrays: call generate and init outside of jit.")
  prompts, lengths = np.asarray(prompts), np.asarray(lengths)
  if prompts.ndim != 2 or lengths.shape != prompts.shape[:1]:
    raise Error(
        "prompts must be int32[B, P] and lengths int32[B], "
        f"got {prompts.shape} and {lengths.shape}.")
  if not (np.issubdtype(prompts.dtype, np.integer) and np.issubdtype(lengths.dtype, np.integer)):
    raise Error(
        f"prompts and lengths must hold integers, got {prompts.dtype} and {lengths.dtype}.")
  if prompts.shape[0] < 1:
    raise Error("prompts holds no row: at least one prompt is needed.")
  for row, length in enumerate(lengths):
    if length < 1:
      raise Error(f"The prompt of row {row} is empty: a model needs at least one token.")
    if length > prompts.shape[1]:
      raise Error(
          f"lengths[{row}] = {length} exceeds the {prompts.shape[1]} columns of prompts.")
    if max_length is not None and length >= max_length:
      raise Error(
          f"The prompt of row {row} has {length} tokens, but the context of the model holds "
          f"{max_length} and the answer needs at least one of them.")
    text = prompts[row, :length]
    if text.min() < 0 or text.max() >= vocab_size:
      raise Error(
          f"The prompt of row {row} holds a token outside of the vocabulary of {vocab_size}.")
