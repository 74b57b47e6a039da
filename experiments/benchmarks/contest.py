"""Decoders of several libraries over the same prompts, in turn, and the table of what they did."""

import functools
import itertools
import statistics
import time
from typing import Callable, NamedTuple

import jax
import numpy as np

from experiments.benchmarks import peers
from specjax import decode
from specjax.launch import dialogue, divergence
from specjax.launch.build import Setup
from specjax.launch.prompts import Conversation
from specjax.stats.counts import Counts
from specjax.types import Params

PLAIN = "specjax plain"
_PAUSE = 0.1  # seconds; threads of the one before stop waiting actively for work


class Played(NamedTuple):
  """One prompt, decoded once."""

  tokens: list[int]
  seconds: float
  timed: int  # tokens that were made in these seconds
  counts: Counts | None  # of our own rounds


class Result(NamedTuple):
  """What one contestant did; rates are tokens a second, one for each repetition."""

  rates: list[float]
  category_rates: dict[str, list[float]]
  same_texts: int  # prompts with the very tokens of `PLAIN`
  divergences: list[divergence.Divergence]
  tau: float | None
  alpha: float | None

  @property
  def rate(self) -> float:
    return statistics.median(self.rates)


Contestant = Callable[[list[int]], Played]


def ours(setup: Setup, decoder: decode.Decoder, params: Params, key: jax.Array,
         max_new_tokens: int) -> Contestant:
  """A decoder of this library. Its time is that of the rounds; the prompt has been read before."""

  def contestant(prompt):
    batch = decode.run_batch(
        decoder, key, params, [prompt], max_new_tokens, eos=setup.model.tokenizer.eos_ids)
    tokens, counts = batch.tokens[0], jax.tree.map(lambda count: count[0], batch.counts)
    return Played(tokens, batch.seconds, len(tokens), counts)

  return contestant


def theirs(peer: peers.Peer, mode: dict, max_new_tokens: int) -> Contestant:
  """A decoder of a peer. Its time begins after the first tokens, which reading the prompt gives."""

  def contestant(prompt):
    return Played(*peer.decode(prompt, max_new_tokens, mode), None)

  return contestant


def play_all(
    contestants: dict[str, Contestant], prompts: list[list[int]], repeats: int,
    progress: Callable[[], None] = lambda: None) -> dict[str, list[list[Played]]]:
  """[repetition][prompt] of every contestant; prompt by prompt, each going first in its turn."""
  for contestant in contestants.values():
    contestant(prompts[0])  # memory is claimed and threads are started
  names = list(contestants)
  played = {name: [[] for _ in range(repeats)] for name in names}
  for turn, (repeat, prompt) in enumerate(itertools.product(range(repeats), prompts)):
    first = turn % len(names)
    for name in names[first:] + names[:first]:
      time.sleep(_PAUSE)
      played[name][repeat].append(contestants[name](prompt))
      progress()
  return played


def judge(
    setup: Setup, conversations: list[Conversation], prompts: list[list[int]],
    played: dict[str, list[list[Played]]]) -> dict[str, Result]:
  """Rates, texts and acceptance of every contestant."""
  categories = list(dict.fromkeys(conversation.category for conversation in conversations))
  results = {}
  for name, repetitions in played.items():
    rates = functools.partial(_rates, repetitions, conversations)
    texts = repetitions[0]
    found = [
        divergence.first(setup, _answer(*pair))
        for pair in zip(conversations, prompts, texts, played[PLAIN][0])]
    counts = [text.counts for text in texts if text.counts is not None]
    results[name] = Result(
        rates=rates(), category_rates={category: rates(category) for category in categories},
        same_texts=found.count(None), divergences=[each for each in found if each],
        tau=_ratio(counts, "emitted", "rounds"), alpha=_ratio(counts, "accepted", "tested"))
  return results


def ratio(
    results: dict[str, Result], name: str, to: str, category: str | None = None
) -> tuple[float, float, float]:
  """(median, least, largest) of the rates of two contestants, repetition by repetition."""
  first, second = (
      each.rates if category is None else each.category_rates[category]
      for each in (results[name], results[to]))
  ratios = [a / b for a, b in zip(first, second)]
  return statistics.median(ratios), min(ratios), max(ratios)


def _rates(repetitions, conversations, category=None) -> list[float]:
  rates = []
  for texts in repetitions:
    chosen = [
        text for text, conversation in zip(texts, conversations)
        if category in (None, conversation.category)]
    seconds = sum(text.seconds for text in chosen)
    rates.append(sum(text.timed for text in chosen) / seconds if seconds else float("nan"))
  return rates


def _answer(conversation: Conversation, prompt: list[int], text: Played, plain: Played):
  return dialogue.Answer(
      name=conversation.name, category=conversation.category, turn=0, prompt=prompt,
      tokens=text.tokens, text="", baseline_tokens=plain.tokens, counts=text.counts,
      seconds=text.seconds, baseline_seconds=plain.seconds)


def _ratio(counts: list[Counts], part: str, whole: str) -> float | None:
  above, below = (
      sum(np.sum(getattr(each, name)) for each in counts) for name in (part, whole))
  return float(above / below) if below else None
