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
from specjax.types import Array, Params


def first(setup: Setup, answer: Answer) -> Divergence | None:
  """The first difference of an answer from its baseline, None if there is none."""
  ours, plain = answer.tokens, answer.baseline_tokens
  if ours == plain:
    return None
  same = len(os.path.commonprefix([ours, plain]))
  there = tuple(tokens[same] if same < len(tokens) else None for tokens in (ours, plain))
  return Divergence(
      answer.name, answer.turn, same, there,
      margin(next_logits(setup.plain, setup.params, answer.prompt + ours[:same])))


def next_logits(plain: decode.Decoder, params: Params, text: list[int]) -> Array:
  """The target's logits float[V] after a text, from a pass over its last token alone."""
  padded, lengths = decode.pad([text])
  state = plain.init(params, padded, lengths)
  last = jnp.asarray(padded[:, -1:])
  return plain.target.forward(params.target, state.cache, last, state.lengths - 1).logits[0, 0]


def margin(scores: Array) -> float:
  """The best of the scores float[V] less the second best."""
  top = np.asarray(jax.lax.top_k(scores, 2)[0])
  return float(top[0] - top[1])
