"""Counts from runs of the real decoder on table models, the smallest that it can decode."""

from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from specjax import decode, logits
from specjax.models import table

_ROWS, _PROMPT, _NEW = 64, 4, 4096


def tokens_per_pass(make: Callable, laws: tuple, gamma: int, seed: int) -> float:
  """tau, the extra token counted, over 64 texts of 4096 tokens.

  The last round of a text is cut at its end, which takes below 0.002 off tau.
  """
  vocab = len(laws[0])
  target, drafter = (jnp.log(jnp.asarray(np.tile(law, (vocab, 1)), jnp.float32)) for law in laws)
  decoder = decode.speculative(
      table.target(target), table.drafter(drafter, gamma), make(), logits.temperature(1.0))
  prompts = np.random.default_rng(seed).integers(vocab, size=(_ROWS, _PROMPT))
  stats = decode.generate(
      decoder, jax.random.key(seed), {}, jnp.asarray(prompts, jnp.int32),
      jnp.full(_ROWS, _PROMPT, jnp.int32), _NEW).stats
  return stats.emitted.sum().item() / stats.rounds.sum().item()
