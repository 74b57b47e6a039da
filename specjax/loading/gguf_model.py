"""GGUF metadata and tensor names of Llama-family models, in this library's terms."""

import math
import re

import numpy as np

from specjax.loading import gguf_file
from specjax.loading.error import LoadError
from specjax.loading.tensors import Tensor
from specjax.models import rope
from specjax.models.config import ModelConfig, RopeScaling

_ARCHITECTURES = ("llama", "qwen2", "qwen3")
_ROPE_FACTORS = "rope_freqs.weight"

# Metadata of relatives that compute something else; absent, zero or false in a plain decoder.
_UNSUPPORTED = (
    "expert_count", "attention.sliding_window", "attention.scale", "attention.clamp_kqv",
    "attention.max_alibi_bias", "residual_scale", "embedding_scale", "logit_scale",
    "attn_logit_softcapping", "final_logit_softcapping",
)

_TOP_NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class _Metadata:
  """Typed access to the keys of a file, those of its architecture by their last part."""

  def __init__(self, file: gguf_file.File):
    self.file = file
    self.architecture = self._get("general.architecture", str)
    if self.architecture not in _ARCHITECTURES:
      raise LoadError(
          f"{file.path}: the architecture {self.architecture!r} is not supported; expected one of "
          f"{', '.join(_ARCHITECTURES)}.")

  def _get(self, key: str, kind: type, default=None):
    value = self.file.metadata.get(key, default)
    if value is None:
      raise LoadError(f"{self.file.path}: the metadata key {key!r} is missing.")
    if type(value) is not kind:
      raise LoadError(
          f"{self.file.path}: the metadata key {key!r} should be of type {kind.__name__}, found "
          f"{str(value)[:80]!r} of type {type(value).__name__}.")
    return value

  def get(self, key: str, kind: type, default=None):
    return self._get(f"{self.architecture}.{key}", kind, default)

  def real(self, key: str, default=None) -> float:
    """A positive float32 of the file as the decimal that was meant (1e-5, not 9.99999974e-06)."""
    value = self.get(key, float, default)
    if not 0 < value < math.inf:
      raise LoadError(
          f"{self.file.path}: {self.architecture}.{key} should be a positive number, "
          f"found {value}.")
    return float(str(np.float32(value)))

  def has(self, key: str) -> bool:
    return f"{self.architecture}.{key}" in self.file.metadata


def _refuse_relatives(metadata: _Metadata):
  for key in _UNSUPPORTED:
    if metadata.file.metadata.get(f"{metadata.architecture}.{key}"):
      raise LoadError(
          f"{metadata.file.path}: {metadata.architecture}.{key} is set, which is not supported "
          f"(dense decoders with full attention are).")


def _scaling(metadata: _Metadata) -> RopeScaling | None:
  """The rope scaling that the metadata names; Llama 3's is a tensor instead."""
  kind = metadata.get("rope.scaling.type", str, "none")
  if kind == "none":
    return None
  if kind not in ("linear", "yarn"):
    raise LoadError(
        f"{metadata.file.path}: rope scaling {kind!r} is not supported; expected none, linear or "
        f"yarn.")
  factor = metadata.real("rope.scaling.factor")
  length = metadata.get("rope.scaling.original_context_length", int, 0)
  if kind == "linear":
    return RopeScaling("linear", factor, length)
  scaling = RopeScaling(
      "yarn", factor, length,
      beta_fast=metadata.real("rope.scaling.yarn_beta_fast", 32.0),
      beta_slow=metadata.real("rope.scaling.yarn_beta_slow", 1.0))
  # The file's factor multiplies the usual temperature instead of replacing it.
  temperature = rope.magnitude(scaling) * metadata.real("rope.scaling.attn_factor", 1.0)
  return RopeScaling(**{**vars(scaling), "attention_factor": temperature})


def _llama3_scaling(config: ModelConfig, factors: Tensor) -> RopeScaling:
  """Recognises the divisors of the frequencies that Llama 3.1 and later store as a tensor."""
  divisors = factors.read().reshape(-1)
  if divisors.shape != (config.head_dim // 2,) or not np.all(np.isfinite(divisors)):
    raise LoadError(
        f"{factors.file}: {_ROPE_FACTORS} should hold {config.head_dim // 2} finite numbers, found "
        f"shape {divisors.shape}.")
  scaling = RopeScaling("llama3", float(divisors.max()), 8192, 1.0, 4.0)
  plain = rope.frequencies(config)
  scaled = rope.frequencies(ModelConfig(**{**vars(config), "rope_scaling": scaling}))
  if not np.allclose(plain / divisors, scaled, rtol=1e-4, atol=0):
    raise LoadError(
        f"{factors.file}: {_ROPE_FACTORS} is not the rule of Llama 3 (8192 trained tokens, factors "
        f"1 and 4), and no other is supported.")
  return scaling


def config(file: gguf_file.File, dtype: str) -> ModelConfig:
  """The model's shape from metadata, and from the tensors where there is no key for it.

  Raises:
    LoadError: an unsupported architecture or feature, or a missing or mistyped key.
  """
  metadata = _Metadata(file)
  _refuse_relatives(metadata)
  if (embedding := file.tensors.get("token_embd.weight")) is None or len(embedding.shape) != 2:
    raise LoadError(f"{file.path}: there is no matrix token_embd.weight.")
  heads, hidden = metadata.get("attention.head_count", int), metadata.get("embedding_length", int)
  head_dim = metadata.get("attention.key_length", int, hidden // max(heads, 1))
  for key in ("attention.value_length", "rope.dimension_count"):
    if (found := metadata.get(key, int, head_dim)) != head_dim:
      raise LoadError(
          f"{file.path}: {metadata.architecture}.{key} should equal the head size {head_dim}, "
          f"found {found}.")
  try:
    plain = ModelConfig(
        vocab_size=embedding.shape[0],
        hidden_size=hidden,
        mlp_size=metadata.get("feed_forward_length", int),
        num_layers=metadata.get("block_count", int),
        num_heads=heads,
        num_kv_heads=metadata.get("attention.head_count_kv", int, heads),
        head_dim=head_dim,
        max_length=metadata.get("context_length", int),
        rope_theta=metadata.real("rope.freq_base", 10000.0),
        rope_scaling=_scaling(metadata),
        norm_eps=metadata.real("attention.layer_norm_rms_epsilon"),
        tied_head="output.weight" not in file.tensors,
        qkv_bias="blk.0.attn_q.bias" in file.tensors,
        out_bias="blk.0.attn_output.bias" in file.tensors,
        qk_norm=metadata.architecture == "qwen3",
        dtype=dtype)
  except LoadError:
    raise
  except ValueError as error:
    raise LoadError(f"{file.path}: impossible metadata: {error}") from error
  if _ROPE_FACTORS not in file.tensors:
    return plain
  scaling = _llama3_scaling(plain, file.tensors[_ROPE_FACTORS])
  return ModelConfig(**{**vars(plain), "rope_scaling": scaling})


def _canonical(name: str) -> str:
  """The Hugging Face name; an unknown name stays as it is, and `assemble` will refuse it."""
  if match := re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name):
    layer, stem, kind = match.groups()
    return f"model.layers.{layer}.{_LAYER_NAMES.get(stem, stem)}.{kind}"
  stem, _, kind = name.rpartition(".")
  return f"{_TOP_NAMES.get(stem, stem)}.{kind}"


def _unpermuted(tensor: Tensor, heads: int) -> Tensor:
  """Undoes the row order of llama files, where the two coordinates of a rotated plane are adjacent.

  The other architectures keep the halves of a head apart, as Hugging Face does.
  """

  def read() -> np.ndarray:
    rows = tensor.read()
    return rows.reshape(heads, -1, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)

  return tensor._replace(read=read)


def tensors(file: gguf_file.File, config: ModelConfig) -> dict[str, Tensor]:
  """The file's tensors under Hugging Face names and in Hugging Face's row order."""
  permuted = file.metadata["general.architecture"] == "llama"
  heads = {"q_proj": config.num_heads, "k_proj": config.num_kv_heads}
  named = {}
  for name, tensor in file.tensors.items():
    if name == _ROPE_FACTORS:
      continue
    canonical = _canonical(name)
    projection = canonical.split(".")[-2]
    if permuted and projection in heads:
      tensor = _unpermuted(tensor, heads[projection])
    named[canonical] = tensor
  return named
