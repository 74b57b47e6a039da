"""Multi-token prediction: one decoder layer behind the target, applied again for each token.

DeepSeek-V3 (arXiv 2412.19437, section 2.2), Qwen3-Next, and the dense layers of Qwen3 that
speculators trains. Embedding and LM head are the target's.
"""

import dataclasses

import flax.linen as nn
import jax.numpy as jnp

from specjax.models.config import ModelConfig
from specjax.models.heads import parts, record
from specjax.models.heads.experts import Experts, ExpertsConfig
from specjax.models.heads.latent import LatentAttention, LatentConfig
from specjax.models.heads.record import Head, HeadOutput


@dataclasses.dataclass(frozen=True)
class MtpConfig:
  """`layer` has the target's hidden and vocabulary size, and one layer."""

  layer: ModelConfig
  captures: tuple[int, ...]  # the target's last hidden state, after its final norm
  latent: LatentConfig | None = None  # latent attention in place of grouped-query attention
  experts: ExpertsConfig | None = None  # a mixture in place of SwiGLU
  gated: bool = False  # attention's output is gated (Qwen3-Next)
  zero_centred: bool = False  # norms multiply by 1 + scale (Qwen3-Next)
  rotary_dim: int | None = None  # features of a head that are rotated, all if None
  # The hidden state that the next step takes: after the last norm (transformers, SGLang,
  # Qwen3-Next, speculators), else the layer's output (vLLM's DeepSeek module).
  feeds_normed: bool = True
  zero_first: bool = False  # no embedding at position 0 (vLLM's DeepSeek module)


class Mtp(nn.Module):
  """fc([norm(embedding), norm(hidden)]), a decoder layer, a norm, the target's LM head."""

  config: MtpConfig

  def fuse(self, features):
    return features[:, :, 0].astype(self.config.layer.dtype)

  @nn.compact
  def __call__(self, cache, tokens, hidden, lengths, depths=None, mask=None) -> HeadOutput:
    c, more = self.config.layer, dict(zero_centred=self.config.zero_centred)
    table = (c.vocab_size, c.hidden_size)
    embedding = self.param("embedding", nn.initializers.normal(0.02), table, c.dtype)
    head = self.param("head", parts.matrix, table, c.dtype)
    embedded = embedding[tokens]
    if self.config.zero_first:
      ahead = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None] if depths is None else depths
      first = lengths[:, None] + ahead == 0
      embedded = jnp.where(first[..., None], 0, embedded)
    both = jnp.concatenate([
        parts.norm(c, name="embed_norm", **more)(parts.columns(embedded)),
        parts.norm(c, name="hidden_norm", **more)(parts.columns(hidden))])
    x = parts.Linear(2 * c.hidden_size, c.hidden_size, c.dtype, name="fc")(both)
    window = parts.window(
        self._rotated(), cache[0].keys.shape[-2], tokens, lengths, depths, mask)
    x, layer_cache = self._layer()(x, cache[0], window)
    normed = parts.norm(c, name="norm", **more)(x)
    batch = tokens.shape[0]
    fed = parts.rows(normed if self.config.feeds_normed else x, batch)
    return HeadOutput(parts.logits(head, normed, batch), fed, (layer_cache,))

  def _rotated(self) -> ModelConfig:
    """A config whose heads are the features that take a position."""
    c = self.config
    dim = c.latent.rope if c.latent else c.rotary_dim or c.layer.head_dim
    return dataclasses.replace(c.layer, head_dim=dim)

  def _layer(self) -> parts.Layer:
    c = self.config
    if c.latent:
      attention = LatentAttention(c.layer, c.latent, parent=None)
    else:
      attention = parts.Attention(
          c.layer, c.layer.hidden_size, c.gated, c.zero_centred, parent=None)
    if c.experts:
      mlp = Experts(c.layer.hidden_size, c.experts, c.layer.dtype, parent=None)
    else:
      mlp = parts.Mlp(c.layer.hidden_size, c.layer.mlp_size, c.layer.dtype, parent=None)
    return parts.Layer(c.layer, attention, mlp, zero_centred=c.zero_centred, name="layer_0")


def mtp(config: MtpConfig) -> Head:
  """The functions of the module."""
  return record.make(Mtp(config), config.layer, config.captures, config.layer.vocab_size)
