"""DFlash and DSpark: a block of tokens in one pass, over keys and values of target features.

DFlash (Chen, Liang, Liu, ICML 2026, arXiv 2602.06036): the rows of the block are the token behind
the text, the anchor, and MASK; each predicts the token at its own place, so B rows draft B - 1.
DSpark (arXiv 2607.05147): each row predicts the token after its place, so B rows draft B, and a
Markov head corrects each row's logits by the token drafted before it.

The context never passes through the layers: its features are projected once, and every layer
takes keys and values of the same projection.
"""

import dataclasses
from typing import NamedTuple

import flax.linen as nn
import jax.numpy as jnp

from specjax.models import rope
from specjax.models.cache import Cache
from specjax.models.config import ModelConfig
from specjax.models.heads import parts
from specjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class DFlashConfig:
  """`layer` describes the drafter's own layers; its vocabulary is the target's."""

  layer: ModelConfig
  captures: tuple[int, ...]  # hidden states of the target, in ascending order
  target_size: int  # the target's hidden size
  block_size: int  # B
  mask_token: int
  draft_vocab: int  # tokens that can be drafted
  windows: tuple[int | None, ...]  # for each layer, how many places before the anchor it sees
  causal: tuple[bool, ...]  # for each layer, whether rows see no later rows of the block
  from_anchor: bool = False  # the anchor's row drafts too (DSpark)
  markov_rank: int = 0  # of DSpark's Markov head, 0 without
  confidence: bool = False  # DSpark's confidence head
  confidence_reads_markov: bool = False  # it reads the Markov embedding too

  @property
  def drafts(self) -> int:
    """Tokens of one block."""
    return self.block_size - (not self.from_anchor)


class Block(NamedTuple):
  """What one block pass returns for the D rows that draft."""

  logits: Array  # float32[B, D, Vd], over the draft vocabulary
  hidden: Array  # float[B, D, h], after the final norm
  cache: Cache  # holds the block behind the context, until the next context is written there


class DFlash(nn.Module):
  """Qwen3 layers whose context is the target's."""

  config: DFlashConfig

  def setup(self):
    c, states = self.config.layer, len(self.config.captures)
    self.embedding = self.param(
        "embedding", nn.initializers.normal(0.02), (c.vocab_size, c.hidden_size), c.dtype)
    self.head = self.param(
        "head", parts.matrix, (self.config.draft_vocab, c.hidden_size), c.dtype)
    self.fc = parts.Linear(states * self.config.target_size, c.hidden_size, c.dtype)
    self.hidden_norm = parts.norm(c)
    for i in range(c.num_layers):
      setattr(self, f"layer_{i}", parts.layer(c))
    self.norm = parts.norm(c)
    if rank := self.config.markov_rank:
      self.markov_in = self.param("markov_in", parts.matrix, (c.vocab_size, rank), c.dtype)
      self.markov_out = self.param("markov_out", parts.matrix, (c.vocab_size, rank), c.dtype)
    if self.config.confidence:
      reads = self.config.markov_rank if self.config.confidence_reads_markov else 0
      self.confidence_head = parts.Linear(c.hidden_size + reads, 1, c.dtype, bias=True)

  def fuse(self, features: Array) -> Array:
    """The context [h, B * T] of features float[B, T, C, H]."""
    return self.hidden_norm(self.fc(parts.columns(features.reshape(*features.shape[:2], -1))))

  def read(self, cache: Cache, features: Array, start: Array) -> Cache:
    """Keys and values of features float[B, T, C, H], which stand at positions start[b] + t."""
    context = self.fuse(features)
    places = start[:, None] + jnp.arange(features.shape[1], dtype=jnp.int32)[None]
    rotation = rope.rotation(self.config.layer, places)
    return tuple(
        getattr(self, f"layer_{i}").attention.attend_to(context, layer_cache, start, rotation)
        for i, layer_cache in enumerate(cache))

  def draft(self, cache: Cache, tokens: Array, lengths: Array) -> Block:
    """The block behind `lengths[b]` context rows, whose anchor is `tokens[b]`."""
    c, batch = self.config, tokens.shape[0]
    masks = jnp.full((batch, c.block_size - 1), c.mask_token, tokens.dtype)
    x = parts.columns(self.embedding[jnp.concatenate([tokens[:, None], masks], 1)])
    rows = jnp.arange(c.block_size, dtype=jnp.int32)
    rotation = rope.rotation(c.layer, lengths[:, None] + rows[None])
    caches = list(cache)
    for i in range(c.layer.num_layers):
      sees = self._sees(lengths, cache[i].keys.shape[-2], i)
      window = parts.Window(lengths, rotation, sees)
      x, caches[i] = getattr(self, f"layer_{i}")(x, cache[i], window)
    hidden = parts.rows(self.norm(x), batch)[:, c.block_size - c.drafts:]
    return Block(
        parts.logits(self.head, parts.columns(hidden), batch), hidden, tuple(caches))

  def _sees(self, lengths: Array, capacity: int, layer: int) -> Array:
    """bool[B, block, S]: the context, or its last places, and the block, or its rows so far."""
    c = self.config
    place = (jnp.arange(capacity)[None] - lengths[:, None])[:, None]  # counted from the anchor
    first = -capacity if c.windows[layer] is None else -c.windows[layer]
    row = jnp.arange(c.block_size)[None, :, None]
    last = row if c.causal[layer] else jnp.full_like(row, c.block_size - 1)
    return (place >= first) & (place <= last)

  def correct(self, logits: Array, previous: Array) -> Array:
    """Logits float[B, V] of a row, corrected by the token int32[B] drafted before it."""
    return logits + parts.logits(
        self.markov_out, self.markov_in[previous].T, previous.shape[0])[:, 0]

  def trust(self, hidden: Array, previous: Array) -> Array:
    """The logit float[B] of a row's acceptance, by the confidence head."""
    inputs = [hidden]
    if self.config.confidence_reads_markov:
      inputs.append(self.markov_in[previous])
    return self.confidence_head(jnp.concatenate(inputs, 1).T)[0]


def apply(config: DFlashConfig, method: str, params: PyTree, *inputs):
  """Applies a method of `DFlash`: fuse, read, draft, correct or trust."""
  return DFlash(config).apply({"params": params}, *inputs, method=method)
