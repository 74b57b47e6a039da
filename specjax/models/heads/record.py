"""What EAGLE and MTP have in common: a network that draws a chain on from hidden states."""

from typing import Callable, NamedTuple

import flax.linen as nn
import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.models import cache as cache_lib
from specjax.models.config import ModelConfig
from specjax.types import Array, PyTree, Static, method, static


class HeadOutput(NamedTuple):
  """What one pass of a head returns for its T rows."""

  logits: Array  # float32[B, T, Vd], over the draft vocabulary
  hidden: Array  # float[B, T, h]: takes the place of the target's feature in the next step
  cache: PyTree


@method
class Head:
  """A network over features and tokens, as pure functions over an explicit cache.

  init(batch, capacity) -> cache, as `types.InitFn` without parameters
  fuse(params, features float[B, T, C, H]) -> hidden float[B, T, h]
    The captured states of the target as the network takes them. What the network itself returns as
    `HeadOutput.hidden` is taken as it is.
  forward(params, cache, tokens int32[B, T], hidden float[B, T, h], lengths int32[B], depths=None,
      mask=None) -> HeadOutput
    Row t pairs `hidden[b, t]` of position `lengths[b] + t` with `tokens[b, t]`, the token of the
    position after it. Slots, depths and mask as in `types.ForwardFn`.

  `params` are complete: see `complete`.
  """

  init: Callable
  fuse: Callable
  forward: Callable
  captures: tuple[int, ...] = static()  # as `types.Target.captures`
  hidden_size: int = static()  # h
  draft_vocab: int = static()  # Vd
  vocab_size: int = static()  # V, of the target
  dtype: str = static()  # of hidden states


def make(
    module: nn.Module, layer: ModelConfig, captures: tuple[int, ...], draft_vocab: int) -> Head:
  """The functions of a module with methods `fuse` and `__call__`; equal ones for equal modules."""
  return Head(
      init=Partial(Static(cache_lib.empty, layer)), fuse=Partial(Static(_fuse, module)),
      forward=Partial(Static(_forward, module)), captures=captures,
      hidden_size=layer.hidden_size, draft_vocab=draft_vocab, vocab_size=layer.vocab_size,
      dtype=layer.dtype)


def _fuse(module: nn.Module, params: PyTree, features: Array) -> Array:
  return module.apply({"params": params}, features, method="fuse")


def _forward(
    module: nn.Module, params: PyTree, cache: PyTree, tokens: Array, hidden: Array, lengths: Array,
    depths: Array | None = None, mask: Array | None = None) -> HeadOutput:
  return module.apply({"params": params}, cache, tokens, hidden, lengths, depths, mask)


def complete(params: PyTree, target: PyTree) -> PyTree:
  """Adds what a drafter's file leaves to the target: the embedding, the LM head, or both.

  Args:
    params: of the drafter.
    target: of the target, in the layout of `models.transformer`.
  """
  return {
      "embedding": target["embedding"],
      "head": target.get("head", target["embedding"])} | params


def spread(params: PyTree, logits: Array, vocab_size: int) -> Array:
  """Logits [..., Vd] over the target's vocabulary [..., V], -inf for tokens not in the draft's."""
  if "target_ids" not in params:
    return logits
  everywhere = jnp.full((*logits.shape[:-1], vocab_size), -jnp.inf, logits.dtype)
  return everywhere.at[..., params["target_ids"]].set(logits)
