"""Answers conversations with speculative and plain decoding in turn, and takes the time of both."""

import functools
import itertools
from typing import Callable, NamedTuple, Sequence

import jax
import numpy as np

from specjax import decode, loading
from specjax.decode import Batch
from specjax.launch import stops
from specjax.launch.build import Setup
from specjax.launch.prompts import Conversation
from specjax.stats.counts import Counts
from specjax.types import Error


class Answer(NamedTuple):
  """One turn of one conversation, answered both ways."""

  name: str
  category: str
  turn: int
  prompt: list[int]
  tokens: list[int]  # speculative
  text: str
  baseline_tokens: list[int]  # plain
  counts: Counts  # of the speculative decoding of this row
  seconds: float  # of the rounds, without reading the prompt; this row's share of its batch
  baseline_seconds: float


def answer(
    setup: Setup, conversations: list[Conversation], key: jax.Array, *, max_new_tokens: int,
    batch_size: int, template: bool, stop: Sequence[str] = (), repeats: int = 1,
    progress: Callable[[int], None] = lambda turns: None) -> list[Answer]:
  """Answers every turn of every conversation, in their order; later turns see earlier answers.

  Speculative and plain decoding alternate, batch by batch, and each goes first every other time.
  The conversation goes on with the speculative answer.

  Args:
    setup: the decoders.
    conversations: what the user says.
    key: of the run; each turn of each conversation is a row id of its own, so an answer does not
      depend on the batch size.
    max_new_tokens: of each answer.
    batch_size: conversations decoded together; in strict mode they are decoded one by one, since
      the width of a batch would change the bits.
    template: apply the model's chat template; else the bare texts, one after the other.
    stop: strings that end an answer; an answer's text ends before the first of them. The rounds are
      then driven from the host, both ways.
    repeats: times each decoding is measured; the median counts.
    progress: called with the number of turns that have just been answered.

  Raises:
    Error: a prompt that does not fit the model's context; names its file and line.
    FloatingPointError: NaN logits.
  """
  if setup.plain.window:
    batch_size = 1
  row_ids = np.cumsum([0] + [len(c.turns) for c in conversations])
  answers = [[] for _ in conversations]
  batches = itertools.count()
  for first in range(0, len(conversations), batch_size):
    group = range(first, min(first + batch_size, len(conversations)))
    for turn in range(max(len(conversations[index].turns) for index in group)):
      speaking = [index for index in group if turn < len(conversations[index].turns)]
      prompts = [
          encode(setup, conversations[index], [a.text for a in answers[index]], template)
          for index in speaking]
      rows = [row_ids[index] + turn for index in speaking]
      fast, slow = _both_ways(
          setup, key, prompts, rows, max_new_tokens, stop, repeats, swap=next(batches) % 2 == 1)
      for place, index in enumerate(speaking):
        answers[index].append(
            _answer(setup, conversations[index], turn, prompts[place], place, stop, fast, slow))
      progress(len(speaking))
  return list(itertools.chain.from_iterable(answers))


def encode(
    setup: Setup, conversation: Conversation, answers: list[str], template: bool) -> list[int]:
  """The tokens of a conversation after `answers`, up to where the next answer begins.

  Raises:
    Error: the prompt is empty or does not fit the context; names where it came from.
    LoadError: the model has no tokenizer or no chat template, or one that cannot be used.
  """
  tokenizer, turns = setup.model.require_tokenizer(), conversation.turns[:len(answers) + 1]
  if template:
    messages = [{"role": "user", "content": turns[0]}]
    for answer, turn in zip(answers, turns[1:]):
      messages += [
          {"role": "assistant", "content": answer}, {"role": "user", "content": turn}]
    try:
      ids = tokenizer.encode_chat(messages)
    except loading.LoadError as error:
      raise loading.LoadError(
          f"{error} --noapply_chat_template takes prompts as they are.") from error
  else:
    texts = [turns[0]] + [text for pair in zip(answers, turns[1:]) for text in pair]
    ids = tokenizer.encode_raw("\n".join(texts))
  limit = setup.plain.target.max_length
  if not ids:
    raise Error(f"{conversation.source}: the prompt has no tokens")
  if limit is not None and len(ids) >= limit:
    raise Error(
        f"{conversation.source}: turn {len(turns)} makes a prompt of {len(ids)} tokens, but the "
        f"context of the model holds {limit} and the answer needs at least one of them")
  return ids


def _both_ways(
    setup, key, prompts, rows, max_new_tokens, stop, repeats, swap) -> tuple[Batch, Batch]:
  """The speculative and the plain decoding of one batch, of several repeats the median ones."""
  loop = decode.run
  if stop:
    loop = functools.partial(decode.run_until, ends=stops.ends(setup.model.tokenizer, stop))
  decoders, runs = (setup.speculative, setup.plain), ([], [])
  for repeat in range(repeats):
    order = (1, 0) if (repeat + swap) % 2 else (0, 1)
    for which in order:
      runs[which].append(decode.run_batch(
          decoders[which], key, setup.params, prompts, max_new_tokens,
          eos=setup.model.tokenizer.eos_ids, rows=rows, run=loop))
  fast, slow = (sorted(some, key=lambda run: run.seconds)[len(some) // 2] for some in runs)
  return fast, slow


def _answer(setup, conversation, turn, prompt, place, stop, fast: Batch, slow: Batch) -> Answer:
  tokens = fast.tokens[place]
  text = setup.model.tokenizer.decode(tokens, skip_special_tokens=True)
  return Answer(
      name=conversation.name, category=conversation.category, turn=turn, prompt=prompt,
      tokens=tokens, text=stops.truncate(text, stop), baseline_tokens=slow.tokens[place],
      counts=jax.tree.map(lambda count: count[place], fast.counts),
      seconds=_share(fast, place), baseline_seconds=_share(slow, place))


def _share(batch: Batch, place: int) -> float:
  """A row's part of the seconds of its batch, by its tokens."""
  return batch.seconds * len(batch.tokens[place]) / max(1, sum(map(len, batch.tokens)))
