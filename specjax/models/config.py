"""The shape of a Llama-family decoder, read from a checkpoint and checked once."""

import dataclasses

from specjax.types import Error


@dataclasses.dataclass(frozen=True)
class RopeScaling:
  """How rotary frequencies are stretched beyond the trained context.

  kind "linear": every frequency is divided by `factor`.
  kind "llama3": long wavelengths are divided by `factor`, short ones kept, and those between
    `original_length / high_freq_factor` and `original_length / low_freq_factor` interpolated
    (Llama 3.1).
  kind "yarn": NTK-by-parts with ramp `beta_fast`..`beta_slow`, and the logits temperature
    `attention_factor` applied to cos and sin (Peng et al. 2023, arXiv 2309.00071).
  """

  kind: str
  factor: float
  original_length: int = 0  # the trained context in tokens; 0: the model's max_length
  low_freq_factor: float = 1.0
  high_freq_factor: float = 4.0
  beta_fast: float = 32.0
  beta_slow: float = 1.0
  attention_factor: float | None = None  # None: 0.1 ln(factor) + 1


@dataclasses.dataclass(frozen=True)
class ModelConfig:
  """A decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

  Covers Llama, Mistral without sliding window, SmolLM2, Qwen2 (`qkv_bias`) and Qwen3 (`qk_norm`).
  """

  vocab_size: int
  hidden_size: int
  mlp_size: int
  num_layers: int
  num_heads: int
  num_kv_heads: int
  head_dim: int
  max_length: int  # context limit in tokens
  rope_theta: float = 10000.0
  rope_scaling: RopeScaling | None = None
  norm_eps: float = 1e-5
  tied_head: bool = True  # the embedding is also the LM head
  qkv_bias: bool = False
  out_bias: bool = False
  qk_norm: bool = False
  dtype: str = "float32"  # of weights and activations; laws are float32 always

  def __post_init__(self):
    for field in ("vocab_size", "hidden_size", "mlp_size", "num_layers", "num_heads",
                  "num_kv_heads", "head_dim", "max_length"):
      if getattr(self, field) < 1:
        raise Error(f"ModelConfig.{field} must be at least 1, got {getattr(self, field)}.")
    if self.num_heads % self.num_kv_heads:
      raise Error(
          f"ModelConfig.num_heads ({self.num_heads}) must be a multiple of num_kv_heads "
          f"({self.num_kv_heads}).")
    if self.head_dim % 2:
      raise Error(
          f"ModelConfig.head_dim must be even for rotary positions, got {self.head_dim}.")
    if self.dtype not in ("float32", "bfloat16"):
      raise Error(f"ModelConfig.dtype must be float32 or bfloat16, got {self.dtype!r}.")
    if self.rope_scaling and self.rope_scaling.kind not in ("linear", "llama3", "yarn"):
      raise Error(
          f"RopeScaling.kind must be linear, llama3 or yarn, got {self.rope_scaling.kind!r}.")
