"""EAGLE-1 and EAGLE-3: one decoder layer that continues the target's hidden states.

EAGLE (Li et al., ICML 2024, arXiv 2401.15077; the trees of EAGLE-2, arXiv 2406.16858, need no other
network) and EAGLE-3 (Li et al., NeurIPS 2025, arXiv 2503.01840), as the authors' code and the
published checkpoints have them: the paper's figure 5 of EAGLE-3 shows a projection in front of the
attention that neither has.
"""

import dataclasses

import flax.linen as nn
import jax.numpy as jnp

from specjax.models.config import ModelConfig
from specjax.models.heads import parts, record
from specjax.models.heads.record import Head, HeadOutput


@dataclasses.dataclass(frozen=True)
class Eagle1Config:
  """EAGLE-1. `layer` has the target's hidden and vocabulary size."""

  layer: ModelConfig
  captures: tuple[int, ...]  # the target's last hidden state, after its final norm
  fc_bias: bool = True


@dataclasses.dataclass(frozen=True)
class Eagle3Config:
  """EAGLE-3. `layer` describes the drafter's own layers; its vocabulary is the target's."""

  layer: ModelConfig
  captures: tuple[int, ...]  # hidden states of the target, in ascending order
  target_size: int  # the target's hidden size
  draft_vocab: int  # tokens that can be drafted
  norm_before_residual: bool = False  # the residual of the first layer is normed (speculators)
  norm_before_fc: bool = False  # one norm over all captured states together
  fc_norm: bool = False  # a norm for each captured state (EAGLE-3.1)
  norm_output: bool = False  # what is fed back is normed (EAGLE-3.1, as vLLM and SGLang read it)


class Eagle1(nn.Module):
  """Columns fc([embedding, feature]) through decoder layers, the first without an input norm."""

  config: Eagle1Config

  def fuse(self, features):
    return features[:, :, 0].astype(self.config.layer.dtype)

  @nn.compact
  def __call__(self, cache, tokens, hidden, lengths, depths=None, mask=None) -> HeadOutput:
    c = self.config.layer
    table = (c.vocab_size, c.hidden_size)
    embedding = self.param("embedding", nn.initializers.normal(0.02), table, c.dtype)
    head = self.param("head", parts.matrix, table, c.dtype)
    batch = tokens.shape[0]
    window = parts.window(c, cache[0].keys.shape[-2], tokens, lengths, depths, mask)
    x = jnp.concatenate([parts.columns(embedding[tokens]), parts.columns(hidden)])
    fc = parts.Linear(2 * c.hidden_size, c.hidden_size, c.dtype, self.config.fc_bias, name="fc")
    x, caches = fc(x), list(cache)
    for i in range(c.num_layers):
      x, caches[i] = parts.layer(c, f"layer_{i}", normed=i > 0)(x, cache[i], window)
    return HeadOutput(
        parts.logits(head, x, batch), parts.rows(x, batch), tuple(caches))


class FirstLayer(nn.Module):
  """The layer of EAGLE-3 whose attention reads embedding and hidden state side by side."""

  config: Eagle3Config

  @nn.compact
  def __call__(self, embedded, x, cache, window):
    c = self.config.layer
    embedded = parts.norm(c, name="embed_norm")(embedded)
    normed = parts.norm(c, name="hidden_norm")(x)
    attention = parts.Attention(c, 2 * c.hidden_size, name="attention")
    y, cache = attention(jnp.concatenate([embedded, normed]), cache, window)
    x = (normed if self.config.norm_before_residual else x) + y
    mlp = parts.Mlp(c.hidden_size, c.mlp_size, c.dtype, name="mlp")
    return x + mlp(parts.norm(c, name="mlp_norm")(x)), cache


class Eagle3(nn.Module):
  """Features through `fc`, then decoder layers, a norm and a head over the draft vocabulary."""

  config: Eagle3Config

  def setup(self):
    c, states = self.config.layer, len(self.config.captures)
    self.embedding = self.param(
        "embedding", nn.initializers.normal(0.02), (c.vocab_size, c.hidden_size), c.dtype)
    self.head = self.param(
        "head", parts.matrix, (self.config.draft_vocab, c.hidden_size), c.dtype)
    self.fc = parts.Linear(states * self.config.target_size, c.hidden_size, c.dtype)
    if self.config.fc_norm:
      self.fc_norm = [parts.norm(c, self.config.target_size) for _ in range(states)]
    if self.config.norm_before_fc:
      self.input_norm = parts.norm(c, states * self.config.target_size)
    self.layer_0 = FirstLayer(self.config)
    for i in range(1, c.num_layers):
      setattr(self, f"layer_{i}", parts.layer(c))
    self.norm = parts.norm(c)

  def fuse(self, features):
    batch = features.shape[0]
    states = [parts.columns(features[:, :, i]) for i in range(len(self.config.captures))]
    if self.config.fc_norm:
      states = [norm(x) for norm, x in zip(self.fc_norm, states)]
    x = jnp.concatenate(states)
    x = self.input_norm(x) if self.config.norm_before_fc else x
    return parts.rows(self.fc(x), batch)

  def __call__(self, cache, tokens, hidden, lengths, depths=None, mask=None) -> HeadOutput:
    batch = tokens.shape[0]
    window = parts.window(
        self.config.layer, cache[0].keys.shape[-2], tokens, lengths, depths, mask)
    x, caches = parts.columns(hidden), list(cache)
    x, caches[0] = self.layer_0(parts.columns(self.embedding[tokens]), x, cache[0], window)
    for i in range(1, len(cache)):
      x, caches[i] = getattr(self, f"layer_{i}")(x, cache[i], window)
    normed = self.norm(x)
    return HeadOutput(
        parts.logits(self.head, normed, batch),
        parts.rows(normed if self.config.norm_output else x, batch), tuple(caches))


def eagle1(config: Eagle1Config) -> Head:
  """The functions of EAGLE-1."""
  return record.make(Eagle1(config), config.layer, config.captures, config.layer.vocab_size)


def eagle3(config: Eagle3Config) -> Head:
  """The functions of EAGLE-3."""
  return record.make(Eagle3(config), config.layer, config.captures, config.draft_vocab)
