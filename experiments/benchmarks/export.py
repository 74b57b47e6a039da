"""Writes a loaded model in the formats that other libraries read, float32, the very same weights.

A peer that dequantised a file by itself might compute with other numbers than we do; so it is
handed what we decode with. Tokenizers stay here: peers are given token ids and return token ids.
"""

import json
import pathlib

import gguf
import numpy as np
from safetensors.numpy import save_file

from specjax.loading import Model
from specjax.models.config import ModelConfig
from specjax.types import Error, PyTree

# Our name, the Hugging Face name, the GGUF name; `{}` is the layer.
_TOP = (
    ("embedding", "model.embed_tokens.weight", "token_embd.weight"),
    ("final_norm", "model.norm.weight", "output_norm.weight"),
    ("head", "lm_head.weight", "output.weight"))
_LAYER = (
    ("attn_norm", "input_layernorm.weight", "attn_norm.weight"),
    ("q", "self_attn.q_proj.weight", "attn_q.weight"),
    ("k", "self_attn.k_proj.weight", "attn_k.weight"),
    ("v", "self_attn.v_proj.weight", "attn_v.weight"),
    ("q_bias", "self_attn.q_proj.bias", "attn_q.bias"),
    ("k_bias", "self_attn.k_proj.bias", "attn_k.bias"),
    ("v_bias", "self_attn.v_proj.bias", "attn_v.bias"),
    ("q_norm", "self_attn.q_norm.weight", "attn_q_norm.weight"),
    ("k_norm", "self_attn.k_norm.weight", "attn_k_norm.weight"),
    ("out", "self_attn.o_proj.weight", "attn_output.weight"),
    ("out_bias", "self_attn.o_proj.bias", "attn_output.bias"),
    ("mlp_norm", "post_attention_layernorm.weight", "ffn_norm.weight"),
    ("gate", "mlp.gate_proj.weight", "ffn_gate.weight"),
    ("up", "mlp.up_proj.weight", "ffn_up.weight"),
    ("down", "mlp.down_proj.weight", "ffn_down.weight"))


def hugging_face(model: Model, folder: pathlib.Path) -> None:
  """Writes config.json and model.safetensors into a folder.

  Raises:
    Error: the model stretches its rotary frequencies, which is not written.
  """
  config = model.config
  _refuse(model)
  family = _family(config)
  (folder / "config.json").write_text(json.dumps(dict(
      model_type=family,
      architectures=[
          {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[family] + "ForCausalLM"],
      vocab_size=config.vocab_size, hidden_size=config.hidden_size,
      intermediate_size=config.mlp_size, num_hidden_layers=config.num_layers,
      num_attention_heads=config.num_heads, num_key_value_heads=config.num_kv_heads,
      head_dim=config.head_dim, max_position_embeddings=config.max_length,
      rope_theta=config.rope_theta,
      rope_parameters=dict(rope_type="default", rope_theta=config.rope_theta),
      rms_norm_eps=config.norm_eps, hidden_act="silu",
      tie_word_embeddings=config.tied_head, attention_bias=config.qkv_bias,
      bos_token_id=None, eos_token_id=None, dtype="float32")))
  tensors = {theirs: array for theirs, _, array in _tensors(config, model.params)}
  save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def gguf_file(model: Model, path: pathlib.Path) -> None:
  """Writes a GGUF file of float32 tensors, without a vocabulary.

  Raises:
    Error: the model stretches its rotary frequencies, which is not written.
  """
  config = model.config
  _refuse(model)
  family = _family(config)
  writer = gguf.GGUFWriter(path, family)
  writer.add_file_type(gguf.LlamaFileType.ALL_F32)
  writer.add_vocab_size(config.vocab_size)
  writer.add_context_length(config.max_length)
  writer.add_embedding_length(config.hidden_size)
  writer.add_feed_forward_length(config.mlp_size)
  writer.add_block_count(config.num_layers)
  writer.add_head_count(config.num_heads)
  writer.add_head_count_kv(config.num_kv_heads)
  writer.add_key_length(config.head_dim)
  writer.add_value_length(config.head_dim)
  writer.add_rope_dimension_count(config.head_dim)
  writer.add_rope_freq_base(config.rope_theta)
  writer.add_layer_norm_rms_eps(config.norm_eps)
  writer.add_tokenizer_model("no_vocab")
  for _, name, array in _tensors(config, model.params):
    if family == "llama" and ("attn_q." in name or "attn_k." in name):
      array = _interleaved(array, config.head_dim)
    writer.add_tensor(name, array)
  writer.write_header_to_file()
  writer.write_kv_data_to_file()
  writer.write_tensors_to_file()
  writer.close()


def _refuse(model: Model):
  if model.config.rope_scaling is not None:
    raise Error(
        f"{model.source}: rotary frequencies that are stretched ({model.config.rope_scaling.kind}) "
        "cannot be handed to peers; leave them out with --section=model")


def _family(config: ModelConfig) -> str:
  """The architecture that all three libraries know with these biases and norms."""
  if config.qk_norm:
    return "qwen3"
  return "qwen2" if config.qkv_bias and not config.out_bias else "llama"


def _tensors(config: ModelConfig, params: PyTree) -> list[tuple[str, str, np.ndarray]]:
  """(Hugging Face name, GGUF name, float32 array) of every tensor."""
  found = [(theirs, file, params[ours]) for ours, theirs, file in _TOP if ours in params]
  for i in range(config.num_layers):
    parts = _unfused(config, params[f"layer_{i}"])
    found += [(f"model.layers.{i}.{theirs}", f"blk.{i}.{file}", parts[ours])
              for ours, theirs, file in _LAYER if ours in parts]
  return [(theirs, file, np.ascontiguousarray(array, np.float32)) for theirs, file, array in found]


def _unfused(config: ModelConfig, layer: dict) -> dict[str, np.ndarray]:
  """The parameters of a layer with q, k, v and gate, up apart."""
  parts = {name: np.asarray(array) for name, array in layer.items()}
  parts |= zip("qkv", _apart(parts["qkv"]))
  if config.qkv_bias:
    parts |= zip(("q_bias", "k_bias", "v_bias"), _apart(parts["qkv_bias"]))
  parts |= zip(("gate", "up"), parts["gate_up"])
  return parts


def _apart(fused: np.ndarray) -> list[np.ndarray]:
  """q, k and v [heads * head_dim, ...] of [KV, groups + 2, head_dim, ...]."""
  return [part.reshape(-1, *fused.shape[3:]) for part in np.split(fused, [-2, -1], axis=1)]


def _interleaved(rows: np.ndarray, head_dim: int) -> np.ndarray:
  """The row order of llama files: the two coordinates of a rotated plane are neighbours."""
  halves = rows.reshape(-1, 2, head_dim // 2, *rows.shape[1:])
  return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows.shape))
