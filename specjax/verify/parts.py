"""Pieces that several rules share; all for one row."""

from typing import Callable

import jax
import jax.numpy as jnp
from jax import lax

from specjax.logits import total
from specjax.types import Array, Draft, PyTree


def draft_law(draft: Draft, vocab: int, dtype) -> Array:
  """float[N, V]: the recorded draft laws, or the point masses that `log_q is None` stands for."""
  if draft.log_q is not None:
    return draft.log_q
  return point_mass(draft.tokens, vocab, dtype)


def law_below(draft: Draft, row: Array, log_p: Array) -> Array:
  """float[V]: the law that a chain's node after row `row` of log_p float[N + 1, V] was drawn from.

  Below the last node, and where the node is not valid, nothing was drawn: all is -inf, so that the
  residual [p - q]+ is p and needs no case of its own for the bonus token.
  """
  nodes = draft.tokens.shape[0]
  node = jnp.minimum(row, nodes - 1)
  drawn = (row < nodes) & draft.valid[node]
  return jnp.where(drawn, law_of(draft, node, log_p), -jnp.inf)


def law_of(draft: Draft, node: Array, log_p: Array) -> Array:
  """float[V]: the recorded law of one node int32[], or the point mass for `log_q is None`."""
  if draft.log_q is not None:
    return draft.log_q[node]
  return point_mass(draft.tokens[node], log_p.shape[1], log_p.dtype)


def log_q_of_tokens(draft: Draft, dtype) -> Array:
  """float[N]: what each node's token was worth in the law that it was drawn from; 0 if chosen."""
  if draft.log_q is None:
    return jnp.zeros(draft.tokens.shape, dtype)
  return at_token(draft.log_q, draft.tokens)


def at_token(rows: Array, tokens: Array) -> Array:
  """float[N]: rows float[N, V] read at tokens int32[N]. A PAD token reads the last column."""
  return jnp.take_along_axis(rows, tokens[:, None], axis=-1)[:, 0]


def log_ratio(log_p: Array, log_q: Array) -> Array:
  """log(p / q) elementwise, for drafted tokens: -inf where p = 0, and never +inf or NaN.

  A token with q = 0 cannot have been drafted; if it is met all the same it counts as a point mass.
  """
  return log_p - jnp.where(log_q > -jnp.inf, log_q, 0)


def after_rejection(log_w: Array, p: Array, q: Array) -> tuple[Array, Array]:
  """What a node is worth once a child drawn from q was rejected; the step of bottom-up rules.

  With the residual r = [w p - q]+ of mass Z, the node itself is accepted with probability
  Z / (Z + 1 - w), and the law r / Z is left below it (Sun et al., ICLR 2025, arXiv 2403.10444,
  algorithm 2; Weng et al., NeurIPS 2025, arXiv 2505.12398, section 3).

  Args:
    log_w: float[...], the logarithm of the node's weight w <= 1 when the child was drawn.
    p: float[..., V], the law below the node at that time, as probabilities.
    q: float[..., V], the law that the child was drawn from, as probabilities.

  Returns:
    The acceptance float[...] and the law float[..., V]. Where p = q and w = 1 the quotient is 0 / 0
    and counts as 1: exact arithmetic never rejects the child there. Where Z = 0 the law stays p,
    for the same reason.
  """
  residual = jnp.maximum(jnp.exp(log_w)[..., None] * p - q, 0)
  mass = total(residual)
  scale = jnp.where(mass > 0, mass, 1)[..., None]
  return weight_left(log_w, mass), jnp.where((mass > 0)[..., None], residual / scale, p)


def weight_left(log_w: Array, mass: Array) -> Array:
  """Z / (Z + 1 - w) float[...] for log w and the mass Z of `after_rejection`'s residual."""
  rest = mass - jnp.expm1(log_w)
  return jnp.where(rest > 0, mass / jnp.where(rest > 0, rest, 1), 1)


def point_mass(token: Array, vocab: int, dtype) -> Array:
  """float[..., V]: the law of a token int32[...] that is chosen, not drawn."""
  return jnp.log(jax.nn.one_hot(token, vocab, dtype=dtype))


def log_normalised(mass: Array, otherwise: Array) -> Array:
  """float[V]: the logarithm of the law proportional to mass float[V] >= 0.

  Where nothing is left it is the law `otherwise`: exact arithmetic never draws from an empty
  residual, but rounded coins may lead there.
  """
  whole = total(mass)
  return jnp.where(whole > 0, jnp.log(mass) - jnp.log(jnp.where(whole > 0, whole, 1)), otherwise)


def where_needed(needed: Array, function: Callable, args: tuple, otherwise: PyTree) -> PyTree:
  """function(*args) if `needed` bool[], else `otherwise`.

  Under vmap `lax.cond` computes both for every row of the batch. This is a loop of at most one
  turn, and takes none where no row needs it. What the function reads of the batch should come from
  `args`: they change in the loop, while XLA moves all that depends on constants only out of the
  loop and computes it in any case.
  """
  def turn(carry):
    _, args, _ = carry
    return jnp.zeros_like(needed), jax.tree.map(lambda x: x + 1, args), function(*args)

  return lax.while_loop(lambda carry: carry[0], turn, (needed, args, otherwise))[2]
