"""A model of characters: a Markov table small enough for every law in it to be known exactly.

It is estimated from the prompts that come with the package, so experiments on it need no
download and take milliseconds: `table:2` as the target with `table:1` as its drafter is
speculative decoding in a nutshell.
"""

import hashlib
import importlib.resources
import json

import numpy as np
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from specjax.loading.error import LoadError
from specjax.loading.model import Model
from specjax.loading.tokenizer import Tokenizer
from specjax.models import markov, table
from specjax.types import Error, Target

ORDERS = (0, 1, 2)
_LETTERS = " abcdefghijklmnopqrstuvwxyz.,?'"
_END = "<end>"  # ends a text
_SYMBOLS = (*_LETTERS, _END)


class TableModel(Model):
  """A model whose parameters are the logits of a Markov table."""

  __slots__ = ()

  def target(self, captures: tuple[int, ...] = ()) -> Target:
    if captures:
      raise Error(
          f"{self.source}: a table has no hidden states, and the drafter reads those of layers "
          f"{', '.join(map(str, captures))}; it needs a transformer as its target.")
    return table.target(self.params)


def load(order: int) -> TableModel:
  """The table of that order, with its tokenizer of characters. There is no chat template.

  Raises:
    LoadError: the order is none of `ORDERS`.
  """
  name = f"table:{order}"
  if order not in ORDERS:
    raise LoadError(f"{name}: the order of a table model is one of {ORDERS}.")
  law = markov.estimate(_texts(), order, len(_SYMBOLS))
  logits = np.log(law).astype(np.float32)
  return TableModel(
      markov.TableConfig(order, len(_SYMBOLS)), logits, _tokenizer(name), name,
      hashlib.sha256(logits.tobytes()).hexdigest())


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
