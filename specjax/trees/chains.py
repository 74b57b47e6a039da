"""What drafters share: chains drawn one token at a time, with the law that each was drawn from."""

from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from specjax.logits import law as law_lib
from specjax.logits.number import number, widen
from specjax.types import Array, Draft, PAD, PyTree


class _Chain(NamedTuple):
  """The chain so far. A row that has stopped is drawn on while others go on, but never valid."""

  tokens: Array  # int32[B, D], PAD where not drawn yet
  log_q: Array  # float[D, B, V]
  valid: Array  # bool[B, D]
  log_prob: Array  # float[B]: the logarithm of the drafter's probability of the tokens so far


def draw_chain(
    logits: Array, step: Callable, carry: PyTree, keys: Array, law: Callable,
    stop_below: Array | None = None) -> tuple[Draft, PyTree]:
  """Draws D tokens a row, the d-th with `keys[:, d]`; given `stop_below` while `continues` says so.

  A row that has stopped has no further valid node, and drawing ends when all rows have stopped.

  Args:
    logits: float[B, V], the drafter's logits for the first token.
    step: (carry, tokens int32[B], depth int32[]) -> (logits float[B, V], carry): feeds the token
      drawn at `depth` and returns the logits of the next one.
    carry: the drafter's state before the first token is fed.
    keys: key[B, D]. Consumed.
    law: `Context.law`.
    stop_below: float[], a probability; None draws all D tokens.

  Returns:
    The chain as a batched Draft, and the carry after at most D - 1 steps: the last of D tokens is
    never fed.
  """
  batch, depth = keys.shape

  def draw(place, logits, going, chain):
    log_q = law(logits, chain.tokens)
    tokens = jax.vmap(law_lib.sample)(keys[:, place], log_q)
    log_prob = chain.log_prob
    if stop_below is not None:
      going &= continues(log_prob, logits, stop_below)
      log_prob += _log_probability(logits, tokens)
    return _Chain(
        chain.tokens.at[:, place].set(tokens), chain.log_q.at[place].set(log_q),
        chain.valid.at[:, place].set(going), log_prob)

  def advance(place, state):
    carry, chain = state
    logits, carry = step(carry, chain.tokens[:, place - 1], place - 1)
    return carry, draw(place, logits, chain.valid[:, place - 1], chain)

  state = carry, draw(0, logits, jnp.ones(batch, bool), _nothing(logits, law, batch, depth))
  if stop_below is None:
    carry, drawn = lax.fori_loop(1, depth, advance, state)
  else:
    _, (carry, drawn) = lax.while_loop(
        lambda loop: (loop[0] < depth) & loop[1][1].valid[:, loop[0] - 1].any(),
        lambda loop: (loop[0] + 1, advance(*loop)), (jnp.int32(1), state))
  return chain(drawn.tokens, jnp.moveaxis(drawn.log_q, 0, 1), drawn.valid), carry


def stopping(stop_below: float | None) -> Array | None:
  """The `stop_below` of `draw_chain`, checked.

  Raises:
    ValueError: not a probability above 0.
  """
  if stop_below is None:
    return None
  return number("stop_below", stop_below, lambda x: (x > 0) & (x <= 1), "above 0 and at most 1")


def continues(log_prob: Array, logits: Array, stop_below: Array) -> Array:
  """bool[...]: whether a draft whose tokens have log-probability `log_prob` gets one more.

  It does if the most likely continuation has at least the probability `stop_below`, by the softmax
  of the drafter's logits as they are: at temperature 0 the law that tokens are drawn from is
  certain of each. SpecDec++ (Huang et al. 2024, arXiv 2405.19715) stops at such a product, of
  learned acceptance probabilities; DISCO (Mamou et al. 2024, arXiv 2405.04304) asks a classifier.

  Only what is known before the next token is drawn may enter. A token that is drawn and then left
  out, because it came out unlikely, would be missing from the law that `Draft.log_q` states.

  Args:
    log_prob: float[...], 0 for an empty draft.
    logits: float[..., V], for the next token.
    stop_below: float[].
  """
  best = log_prob + jax.nn.log_softmax(widen(logits)).max(-1)
  return ~(best < jnp.log(stop_below).astype(best.dtype))  # NaN goes on, and is found by its law


def _log_probability(logits: Array, tokens: Array) -> Array:
  scores = jax.nn.log_softmax(widen(logits))
  return jnp.take_along_axis(scores, tokens[:, None], axis=-1)[:, 0]


def _nothing(logits: Array, law: Callable, batch: int, depth: int) -> _Chain:
  tokens = jnp.full((batch, depth), PAD, jnp.int32)
  shape = jax.eval_shape(law, logits, tokens)
  return _Chain(
      tokens, jnp.zeros((depth, *shape.shape), shape.dtype), jnp.zeros((batch, depth), bool),
      jnp.zeros(batch, widen(logits).dtype))


def chain(tokens: Array, log_q: Array | None, valid: Array) -> Draft:
  """A batched Draft whose nodes form a chain: tokens int32[B, N], log_q float[B, N, V] or None."""
  parents = jnp.broadcast_to(jnp.arange(tokens.shape[1], dtype=jnp.int32) - 1, tokens.shape)
  return Draft(tokens, parents, log_q, valid)
