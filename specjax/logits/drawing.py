"""What drafters share: chains drawn one token at a time, with the law that each was drawn from."""

from typing import Callable

import jax
import jax.numpy as jnp
from jax import lax

from specjax.logits import law as law_lib
from specjax.types import Array, Draft, PAD, Params, PyTree, Verdict


def draw_chain(
    logits: Array, step: Callable, carry: PyTree, keys: Array, law: Callable
) -> tuple[Draft, PyTree]:
  """Draws D tokens a row, the d-th with `keys[:, d]`.

  Args:
    logits: float[B, V], the drafter's logits for the first token.
    step: (carry, tokens int32[B], depth int32[]) -> (logits float[B, V], carry): feeds the token
      drawn at `depth` and returns the logits of the next one.
    carry: the drafter's state before the first token is fed.
    keys: key[B, D]. Consumed.
    law: `Context.law`.

  Returns:
    The chain as a batched Draft, and the carry after D - 1 steps: the last token is never fed.
  """
  batch, depth = keys.shape

  def draw(logits, drafted, keys, place):
    log_q = law(logits, drafted)
    tokens = jax.vmap(law_lib.sample)(keys, log_q)
    return tokens, log_q, drafted.at[:, place].set(tokens)

  def advance(state, inputs):
    carry, tokens, drafted = state
    place, keys = inputs
    logits, carry = step(carry, tokens, place - 1)
    tokens, log_q, drafted = draw(logits, drafted, keys, place)
    return (carry, tokens, drafted), log_q

  drafted = jnp.full((batch, depth), PAD, jnp.int32)
  tokens, first_law, drafted = draw(logits, drafted, keys[:, 0], 0)
  places = jnp.arange(1, depth, dtype=jnp.int32)
  (carry, _, drafted), laws = lax.scan(
      advance, (carry, tokens, drafted), (places, jnp.moveaxis(keys[:, 1:], 0, 1)))
  log_q = jnp.moveaxis(jnp.concatenate([first_law[None], laws]), 0, 1)
  return chain(drafted, log_q, jnp.ones((batch, depth), bool)), carry


def chain(tokens: Array, log_q: Array | None, valid: Array) -> Draft:
  """A batched Draft whose nodes form a chain: tokens int32[B, N], log_q float[B, N, V] or None."""
  parents = jnp.broadcast_to(jnp.arange(tokens.shape[1], dtype=jnp.int32) - 1, tokens.shape)
  return Draft(tokens, parents, log_q, valid)


def no_state(params: Params, tokens: Array, lengths: Array) -> tuple:
  """The `init` of a drafter that remembers nothing between rounds."""
  del params, tokens, lengths
  return ()


def same_state(
    params: Params, state: PyTree, verdict: Verdict, features: Array | None, lengths: Array) -> PyTree:
  """The `observe` of a drafter that has nothing to learn from a round."""
  del params, verdict, features, lengths
  return state
