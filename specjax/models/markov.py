"""Markov tables estimated from texts; `models.table` decodes with them."""

import dataclasses
from typing import Sequence

import numpy as np

_TRUST = 4.0  # how often a context must be seen to count as much as the shorter one


@dataclasses.dataclass(frozen=True)
class TableConfig:
  """The shape of a table model; its parameters are logits float32[V] * order + [V]."""

  order: int  # tokens that the next one depends on
  vocab_size: int
  num_layers: int = 0  # no hidden states, so nothing to capture and no early exit


def estimate(texts: Sequence[Sequence[int]], order: int, vocab_size: int) -> np.ndarray:
  """The law float64[V] * order + [V]: frequencies, shrunk towards those of the shorter context."""
  if order < 0:
    return np.full(vocab_size, 1 / vocab_size)
  counts = np.zeros((vocab_size,) * (order + 1))
  for text in texts:
    for end in range(order, len(text)):
      counts[tuple(text[end - order:end + 1])] += 1
  seen = counts.sum(-1, keepdims=True)
  return (counts + _TRUST * estimate(texts, order - 1, vocab_size)) / (seen + _TRUST)
