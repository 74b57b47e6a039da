"""The way from prompts to arrays and back: lists of token ids, or text, in and out."""

import time
from typing import Callable, NamedTuple, Sequence

import jax
import numpy as np

from specjax import keys
from specjax.decode import loop
from specjax.decode.decoder import Decoder
from specjax.decode.state import State
from specjax.loading.error import LoadError
from specjax.loading.model import Model
from specjax.loading.tokenizer import Tokenizer
from specjax.stats import estimates
from specjax.stats.counts import Counts
from specjax.types import Array, Error, PAD, Params, PyTree


class Batch(NamedTuple):
  """What B prompts that were decoded together gave."""

  tokens: list[list[int]]  # the answers, one list a prompt
  counts: Counts  # numpy
  seconds: float  # of the rounds; neither the reading of the prompts nor compilation is in it
  state: State  # the last one


class Answers(NamedTuple):
  """What a model answered to B prompts."""

  texts: list[str]
  tokens: list[list[int]]  # the same as ids, the end token included
  tau: float  # tokens emitted / target passes, over all prompts
  alpha: float  # drafted tokens accepted / tested; NaN if none was tested
  counts: Counts  # numpy, one row a prompt


def answer(
    decoder: Decoder, model: Model, prompts: Sequence[str], *, max_new_tokens: int = 64,
    seed: int = 0, chat: bool = True, drafter_params: PyTree = None) -> Answers:
  """Text in, text out: the model's answers to prompts of any lengths, decoded together.

  Args:
    decoder: `speculative` or `autoregressive` over `model.target()`.
    model: as `specjax.loading` gives it; its tokenizer and its parameters are used.
    prompts: one text an answer.
    max_new_tokens: of each answer, which the model's end token may end sooner.
    seed: of all draws. The answer to prompt i is a function of the seed, i and the prompt.
    chat: put each prompt into the model's chat format; False takes it as it is.
    drafter_params: the parameters of a drafter that has its own, such as a second model's.

  Raises:
    Error: `prompts` is not a list of texts, one of them is empty or does not fit the context; the
      model has no tokenizer, or no chat template and `chat` is True.
    NotFiniteError: as `generate`.
  """
  _check_texts(prompts)
  tokenizer = model.require_tokenizer()
  ids = [_encode(tokenizer, text, chat) for text in prompts]
  generation = loop.generate(
      decoder, keys.from_seed(seed), Params(model.params, drafter_params), *pad(ids),
      max_new_tokens, eos=tokenizer.eos_ids)
  rows = zip(np.asarray(generation.tokens), np.asarray(generation.lengths))
  tokens = [row[:length].tolist() for row, length in rows]
  counts = jax.tree.map(np.asarray, generation.stats)
  return Answers(
      texts=[tokenizer.decode(each, skip_special_tokens=True) for each in tokens],
      tokens=tokens,
      tau=estimates.ratio(counts.emitted.sum(), counts.rounds.sum()),
      alpha=estimates.ratio(counts.accepted.sum(), counts.tested.sum()),
      counts=counts)


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
    NotFiniteError: as `generate`.
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


def _check_texts(prompts: Sequence[str]) -> None:
  if isinstance(prompts, str):
    raise Error(f"prompts is a list of texts, got one text: write [{prompts!r:.40}].")
  for place, text in enumerate(prompts):
    if not isinstance(text, str):
      raise Error(
          f"prompts[{place}] is no text but {text!r:.80}; `generate` and `run_batch` take token "
          "ids.")
    if not text:
      raise Error(f"prompts[{place}] is empty: there is nothing to answer.")


def _encode(tokenizer: Tokenizer, text: str, chat: bool) -> list[int]:
  if not chat:
    return tokenizer.encode_raw(text)
  try:
    return tokenizer.encode_chat([{"role": "user", "content": text}])
  except LoadError as error:
    raise LoadError(f"{error} chat=False takes prompts as they are.") from error
