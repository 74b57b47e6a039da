"""A drafter over another vocabulary, restricted to the tokens that it shares with the target."""

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from specjax.types import Array, Error, Static


def intersect(drafter_to_target, vocab: int) -> Partial:
  """Logits over the drafter's vocabulary to logits over the target's, -inf where it has no token.

  Applied before the drafter's token is drawn, the law becomes q restricted to the intersection and
  renormalised: token-level intersection, under which every verification rule stays as it is and
  lossless (Timor et al., ICML 2025, arXiv 2502.05202, algorithm 4). It stands first, since
  temperature and truncation belong to the law over shared tokens. A drafter with a reduced
  vocabulary is the same case.

  Args:
    drafter_to_target: int[Vd], the target's id of each of the drafter's tokens, negative where the
      target has no such token.
    vocab: V, the size of the target's vocabulary (static).

  Returns:
    A function of float[..., Vd] to float[..., V].

  Raises:
    Error: ids outside of the target's vocabulary, two tokens with one id, or no shared token;
      when called, logits that are not over Vd tokens.
  """
  ids = np.asarray(drafter_to_target)
  shared = np.flatnonzero(ids >= 0)
  if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
    raise Error(f"intersect takes ids int[Vd], got {ids.dtype}{ids.shape}.")
  if shared.size == 0:
    raise Error("intersect: the two vocabularies share no token, so nothing could be drafted.")
  if ids.max() >= vocab:
    raise Error(f"intersect: id {ids.max()} lies outside of the target's {vocab} tokens.")
  if np.unique(ids[shared]).size != shared.size:
    raise Error("intersect: two of the drafter's tokens have the same id in the target.")
  target_to_drafter = np.full(vocab, ids.size, np.int32)  # out of range: filled with -inf
  target_to_drafter[ids[shared]] = shared
  return Partial(Static(_intersect, ids.size), jnp.asarray(target_to_drafter))


def _intersect(drafter_vocab: int, target_to_drafter: Array, logits: Array) -> Array:
  if logits.shape[-1] != drafter_vocab:
    raise Error(f"intersect maps {drafter_vocab} drafter tokens, got logits{logits.shape}.")
  return jnp.take(logits, target_to_drafter, axis=-1, mode="fill", fill_value=-jnp.inf)
