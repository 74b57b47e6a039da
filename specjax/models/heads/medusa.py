"""Medusa: heads on the target's last hidden state, each for a token further ahead.

Cai et al., ICML 2024, arXiv 2401.10774. The heads know nothing of each other, nor of the tokens
that the others propose.
"""

import dataclasses

import flax.linen as nn
import jax.numpy as jnp

from specjax.models.heads import parts
from specjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class MedusaConfig:
  """`heads` heads, each of `blocks` residual blocks and, if it has its own, a vocabulary matrix."""

  hidden_size: int
  vocab_size: int
  captures: tuple[int, ...]  # the target's last hidden state, after its final norm
  heads: int
  blocks: int = 1
  own_output: bool = True  # false: logits are those of the target's LM head
  dtype: str = "float32"


class Medusa(nn.Module):
  """z + SiLU(W z + b), block after block, then a matrix [V, H]; for each head."""

  config: MedusaConfig

  @nn.compact
  def __call__(self, features: Array) -> Array:
    """Logits float32[B, K, V] for features float[B, H]."""
    c = self.config
    table = (c.vocab_size, c.hidden_size)
    if not c.own_output:
      shared = self.param("head", parts.matrix, table, c.dtype)
    everything = []
    for k in range(c.heads):
      x = features.astype(c.dtype).T
      for i in range(c.blocks):
        linear = parts.Linear(
            c.hidden_size, c.hidden_size, c.dtype, bias=True, name=f"head_{k}_block_{i}")
        x = x + nn.silu(linear(x))
      own = self.param(f"head_{k}", parts.matrix, table, c.dtype) if c.own_output else shared
      everything.append(parts.logits(own, x, features.shape[0])[:, 0])
    return jnp.stack(everything, 1)


def logits(config: MedusaConfig, params: PyTree, features: Array) -> Array:
  """Logits float32[B, K, V] of the token k + 2 places after the last one that the target has read.

  Args:
    config: of the heads.
    params: complete, as by `record.complete`, if they share the target's LM head.
    features: float[B, H], the target's hidden state for that token.
  """
  return Medusa(config).apply({"params": params}, features)
