"""Counts from runs of the real decoder on table models, the smallest that it can decode."""

from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from specjax import decode, logits, verify
from specjax.models import table

_ROWS, _PROMPT = 64, 4


def tokens_per_pass(make: Callable, laws: tuple, gamma: int, seed: int) -> float:
  """tau, the extra token counted, over 64 texts of 4096 tokens.

  The last round of a text is cut at its end, which takes below 0.002 off tau.
  """
  vocab = len(laws[0])
  target, drafter = (jnp.log(jnp.asarray(np.tile(law, (vocab, 1)), jnp.float32)) for law in laws)
  stats = _generate(target, drafter, gamma, make(), 1.0, _prompts(vocab, seed), 4096, seed).stats
  return stats.emitted.sum().item() / stats.rounds.sum().item()


def greedy_changes(seed: int) -> int:
  """How many of 64 x 512 tokens at temperature 0 differ from plain greedy reading of the table."""
  vocab, new = 5, 512
  random = np.random.default_rng(seed)
  target, drafter = 3 * random.standard_normal((2, vocab, vocab, vocab)).astype(np.float32)
  prompts = _prompts(vocab, seed)
  text = [*prompts.T]
  for _ in range(new):
    text.append(target[text[-2], text[-1]].argmax(-1))
  tokens = _generate(target, drafter, 4, verify.greedy(), 0.0, prompts, new, seed).tokens
  return (np.asarray(tokens) != np.stack(text[_PROMPT:], axis=1)).sum().item()


def _generate(target, drafter, gamma, rule, temperature, prompts, new, seed):
  decoder = decode.speculative(
      table.target(target), table.drafter(drafter, gamma), rule, logits.temperature(temperature))
  lengths = jnp.full(_ROWS, _PROMPT, jnp.int32)
  return decode.generate(
      decoder, jax.random.key(seed), {}, jnp.asarray(prompts, jnp.int32), lengths, new)


def _prompts(vocab, seed):
  return np.random.default_rng(seed).integers(vocab, size=(_ROWS, _PROMPT))
