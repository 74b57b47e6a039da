"""Where two texts part that should be one, and how near the target was to a tie there.

Passes of different width round differently, so the argmax of a near-tie may flip. A large margin at
the first difference is a bug.
"""

import os.path

import jax
import jax.numpy as jnp
import numpy as np

from specjax import decode
from specjax.launch.build import Setup
from specjax.launch.dialogue import Answer
from specjax.launch.result import Divergence


def first(setup: Setup, answer: Answer) -> Divergence | None:
  """The first difference of an answer from its baseline, None if there is none."""
  ours, plain = answer.tokens, answer.baseline_tokens
  if ours == plain:
    return None
  same = len(os.path.commonprefix([ours, plain]))
  there = tuple(tokens[same] if same < len(tokens) else None for tokens in (ours, plain))
  return Divergence(
      answer.name, answer.turn, same, there, _margin(setup, answer.prompt + ours[:same]))


def _margin(setup: Setup, text: list[int]) -> float:
  padded, lengths = decode.pad([text])
  state = setup.plain.init(setup.params, padded, lengths)
  last = jnp.asarray(padded[:, -1:])
  output = setup.plain.target.forward(
      setup.params.target, state.cache, last, state.lengths - 1)
  top = np.asarray(jax.lax.top_k(output.logits[0, 0], 2)[0])
  return float(top[0] - top[1])
