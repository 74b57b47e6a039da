"""A model of characters: a Markov table small enough for every law in it to be known exactly.

It is estimated from the prompts that come with the package, so experiments on it need no
download and take milliseconds: `table:2` as the target with `table:1` as its drafter is
speculative decoding in a nutshell.
"""

import hashlib
import importlib.resources
import json
from typing import NamedTuple

import numpy as np
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from specjax.loading.error import LoadError
from specjax.loading.model import Model
from specjax.loading.tokenizer import Tokenizer

ORDERS = (0, 1, 2)
_LETTERS = " abcdefghijklmnopqrstuvwxyz.,?'"
_END = "<end>"  # ends a text
_SYMBOLS = (*_LETTERS, _END)
_TRUST = 4.0  # how often a context must be seen to count as much as the shorter one


class TableConfig(NamedTuple):
  """The shape of a table model; its parameters are logits float32[V] * order + [V]."""

  order: int  # characters that the next one depends on
  vocab_size: int = len(_SYMBOLS)


def load(order: int) -> Model:
  """The table of that order, with its tokenizer of characters. There is no chat template.

  Raises:
    LoadError: the order is none of `ORDERS`.
  """
  name = f"table:{order}"
  if order not in ORDERS:
    raise LoadError(f"{name}: the order of a table model is one of {ORDERS}.")
  logits = np.log(_law(order)).astype(np.float32)
  return Model(
      TableConfig(order), logits, _tokenizer(name), name,
      hashlib.sha256(logits.tobytes()).hexdigest())


def _law(order: int) -> np.ndarray:
  """float64[V] * order + [V]: frequencies, shrunk towards those of the shorter context."""
  if order < 0:
    return np.full(len(_SYMBOLS), 1 / len(_SYMBOLS))
  counts = np.zeros((len(_SYMBOLS),) * (order + 1))
  for text in _texts():
    for end in range(order, len(text)):
      counts[tuple(text[end - order:end + 1])] += 1
  seen = counts.sum(-1, keepdims=True)
  return (counts + _TRUST * _law(order - 1)) / (seen + _TRUST)


def _texts() -> list[list[int]]:
  """The package's prompts, each with its end."""
  tokenizer = _tokenizer("table")
  lines = (importlib.resources.files("specjax") / "data" / "prompts.jsonl").read_text("utf-8")
  turns = [turn for line in lines.splitlines() for turn in _turns(json.loads(line))]
  return [[*tokenizer.encode(turn), _SYMBOLS.index(_END)] for turn in turns]


def _turns(record: dict) -> list[str]:
  return record["turns"] if "turns" in record else [record["prompt"]]


def _tokenizer(source: str) -> Tokenizer:
  """Lower-case letters and a few signs; everything else is a blank."""
  vocabulary = {symbol: index for index, symbol in enumerate(_SYMBOLS)}
  backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=" "))
  backend.normalizer = normalizers.Lowercase()
  backend.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
  backend.decoder = decoders.Fuse()
  backend.add_special_tokens([_END])
  return Tokenizer(backend, (vocabulary[_END],), None, None, {}, source)
