"""MTP modules as they are published: DeepSeek-V3, Qwen3-Next, and speculators' dense Qwen3.

DeepSeek-V3 and Qwen3-Next keep the module among the weights of the target; all of the target's own
tensors but the embedding and the LM head are left alone.
"""

import functools
from typing import Any

from specjax.loading import drafter_config, drafter_files
from specjax.loading.drafter_files import Files, Part, Stack
from specjax.loading.error import LoadError
from specjax.models.config import ModelConfig
from specjax.models.heads.experts import ExpertsConfig
from specjax.models.heads.latent import LatentConfig
from specjax.models.heads.mtp import MtpConfig
from specjax.types import PyTree

# How each layout calls the parts of the module.
_SPECULATORS = dict(fc="input_proj", embed_norm="token_layernorm", hidden_norm="hidden_layernorm",
                    norm="final_layernorm")
_DEEPSEEK = dict(fc="eh_proj", embed_norm="enorm", hidden_norm="hnorm", norm="shared_head.norm")
_QWEN3_NEXT = dict(fc="fc", embed_norm="pre_fc_norm_embedding", hidden_norm="pre_fc_norm_hidden",
                   norm="norm")


def mtp(files: Files, target: ModelConfig, dtype: str) -> tuple[MtpConfig, PyTree]:
  """An MTP module of any of the three layouts."""
  if files.config.get("speculators_model_type") == "mtp":
    return _speculators(files, target, dtype)
  kind = files.config.get("model_type")
  if kind == "deepseek_v3":
    return _deepseek(files, target, dtype)
  if kind == "qwen3_next":
    return _qwen3_next(files, target, dtype)
  raise LoadError(
      f"{files.path}: MTP modules of model type {kind!r:.80} are not supported; expected "
      f"deepseek_v3, qwen3_next, or the speculators layout.")


def _one_module(files: Files):
  if (found := files.config.get("num_nextn_predict_layers", 1)) != 1:
    raise LoadError(
        f"{files.path / 'config.json'}: only one MTP module is supported, found "
        f"num_nextn_predict_layers = {found!r:.20}.")


def _layer(files: Files, values: dict[str, Any], target: ModelConfig, dtype: str, **changes):
  """The module's one layer; the configuration counts the target's."""
  changes = dict(num_hidden_layers=1, layer_types=None) | changes
  layer = drafter_config.layer(files, values | changes, dtype)
  drafter_config.check_target(files, layer, target)
  return layer


def _module(names: dict[str, str], prefix: str, layer: ModelConfig) -> PyTree:
  """The layout of what stands around the layer."""
  hidden = layer.hidden_size
  layout = {x: drafter_files.norm(prefix + names[x], hidden) for x in names if x != "fc"}
  return layout | {"fc": drafter_files.linear({prefix + names["fc"]: hidden}, 2 * hidden)}


def _tables(files: Files, layer: ModelConfig, embedding: str, head: str) -> PyTree:
  """Embedding and LM head, as far as the file has them."""
  names = {"embedding": embedding, "head": head}
  return {key: drafter_files.table(name, layer.vocab_size, layer.hidden_size)
          for key, name in names.items() if f"{name}.weight" in files.tensors}


def _speculators(files: Files, target: ModelConfig, dtype: str) -> tuple[MtpConfig, PyTree]:
  _one_module(files)
  values = drafter_config.block(files, "transformer_layer_config")
  layer = _layer(files, values, target, dtype)
  prefix = "mtp_layers.0."
  layout = _module(_SPECULATORS, prefix, layer) | {"layer_0": drafter_files.layer(prefix, layer)}
  layout |= _tables(files, layer, "embed_tokens", "lm_head")
  return (MtpConfig(layer, (target.num_layers,)),
          drafter_files.assemble(files, layout, dtype, ignored=()))


def _qwen3_next(files: Files, target: ModelConfig, dtype: str) -> tuple[MtpConfig, PyTree]:
  number = functools.partial(drafter_config.number, files)
  share = files.config.get("partial_rotary_factor", 0.25)
  layer = _layer(
      files, files.config, target, dtype, model_type="qwen3", partial_rotary_factor=None)
  rotary = int(layer.head_dim * share) if isinstance(share, float) and 0 < share <= 1 else 0
  if rotary < 2 or rotary % 2:
    raise LoadError(
        f"{files.path / 'config.json'}: partial_rotary_factor should rotate an even number of each "
        f"head's {layer.head_dim} features, found {share!r:.40}.")
  experts = ExpertsConfig(
      number("num_experts"), number("num_experts_per_tok"),
      number("moe_intermediate_size"), number("shared_expert_intermediate_size"),
      normalised=files.config.get("norm_topk_prob", True) is True, gates_shared=True)
  config = MtpConfig(
      layer, (target.num_layers,), experts=experts, gated=True, zero_centred=True,
      rotary_dim=rotary)
  prefix = "mtp.layers.0."
  one = drafter_files.layer(prefix, layer) | {
      "attention": drafter_files.attention(
          prefix + "self_attn.", layer, layer.hidden_size, gated=True),
      "mlp": _experts(files, prefix + "mlp.", layer, experts, "shared_expert")}
  layout = _module(_QWEN3_NEXT, "mtp.", layer) | {"layer_0": one}
  layout |= _tables(files, layer, "model.embed_tokens", "lm_head")
  return config, drafter_files.assemble(
      files, layout, dtype, ignored=("model.layers.", "model.norm."))


def _deepseek(files: Files, target: ModelConfig, dtype: str) -> tuple[MtpConfig, PyTree]:
  number = functools.partial(drafter_config.number, files)
  _one_module(files)
  if (found := files.config.get("scoring_func", "sigmoid")) != "sigmoid":
    raise LoadError(
        f"{files.path / 'config.json'}: only scoring_func 'sigmoid' is supported, found "
        f"{found!r:.40}.")
  latent = LatentConfig(
      None if files.config.get("q_lora_rank") is None else number("q_lora_rank"),
      number("kv_lora_rank"), number("qk_nope_head_dim"),
      number("qk_rope_head_dim"), number("v_head_dim"))
  if latent.value > latent.nope + latent.rope:
    raise LoadError(
        f"{files.path / 'config.json'}: v_head_dim {latent.value} is larger than the heads' "
        f"{latent.nope + latent.rope} features of a key, which is not supported.")
  layer = _layer(
      files, files.config, target, dtype, model_type="llama",
      num_key_value_heads=files.config.get("num_attention_heads"),
      head_dim=latent.nope + latent.rope)
  experts = _deepseek_experts(files)
  config = MtpConfig(layer, (target.num_layers,), latent, experts)
  prefix = f"model.layers.{target.num_layers}."
  one = drafter_files.layer(prefix, layer) | {
      "attention": _latent(prefix + "self_attn.", layer, latent),
      "mlp": _experts(files, prefix + "mlp.", layer, experts, "shared_experts")}
  layout = _module(_DEEPSEEK, prefix, layer) | {"layer_0": one}
  layout |= _tables(files, layer, prefix + "embed_tokens", prefix + "shared_head.head")
  others = tuple(f"model.layers.{i}." for i in range(target.num_layers))
  return config, drafter_files.assemble(
      files, layout, dtype, ignored=(*others, "model.norm.", "model.embed_tokens.", "lm_head."))


def _deepseek_experts(files: Files) -> ExpertsConfig:
  number = functools.partial(drafter_config.number, files)
  size = number("moe_intermediate_size")
  scale = files.config.get("routed_scaling_factor", 1.0)
  if not isinstance(scale, (int, float)) or isinstance(scale, bool) or not 0 < scale < 1e6:
    raise LoadError(
        f"{files.path / 'config.json'}: routed_scaling_factor should be a positive number, found "
        f"{scale!r:.40}.")
  return ExpertsConfig(
      number("n_routed_experts"), number("num_experts_per_tok"), size,
      size * number("n_shared_experts"), sigmoid=True, corrected=True,
      groups=number("n_group", 1), chosen_groups=number("topk_group", 1),
      normalised=files.config.get("norm_topk_prob", True) is True, scale=float(scale))


def _latent(prefix: str, layer: ModelConfig, latent: LatentConfig) -> PyTree:
  hidden, heads = layer.hidden_size, layer.num_heads
  rows = heads * layer.head_dim
  layout = {
      "kv_in": drafter_files.linear(
          {prefix + "kv_a_proj_with_mqa": latent.kv_rank + latent.rope}, hidden),
      "kv_norm": drafter_files.norm(prefix + "kv_a_layernorm", latent.kv_rank),
      "kv": drafter_files.linear(
          {prefix + "kv_b_proj": heads * (latent.nope + latent.value)}, latent.kv_rank),
      "out": drafter_files.linear({prefix + "o_proj": hidden}, heads * latent.value)}
  if latent.q_rank is None:
    return layout | {"q": drafter_files.linear({prefix + "q_proj": rows}, hidden)}
  return layout | {
      "q_in": drafter_files.linear({prefix + "q_a_proj": latent.q_rank}, hidden),
      "q_norm": drafter_files.norm(prefix + "q_a_layernorm", latent.q_rank),
      "q": drafter_files.linear({prefix + "q_b_proj": rows}, latent.q_rank)}


def _experts(
    files: Files, prefix: str, layer: ModelConfig, config: ExpertsConfig, shared: str) -> PyTree:
  c, hidden = config, layer.hidden_size
  if c.experts > len(files.tensors):
    raise LoadError(
        f"{files.path}: the configuration says {c.experts} experts, but there are only "
        f"{len(files.tensors)} tensors in all.")
  if c.chosen > c.experts or c.experts % c.groups or c.chosen_groups > c.groups or (
      c.groups > 1 and c.experts < 2 * c.groups):
    raise LoadError(
        f"{files.path / 'config.json'}: {c.chosen} of {c.experts} experts in {c.chosen_groups} of "
        f"{c.groups} groups is impossible.")

  def each(shape, *names):
    return Stack(tuple(
        tuple(Part(f"{prefix}experts.{i}.{name}.weight", shape) for name in names)
        for i in range(c.experts)))

  layout = {
      "router": drafter_files.table(prefix + "gate", c.experts, hidden),
      "gate_up": each((c.size, hidden), "gate_proj", "up_proj"),
      "down": each((hidden, c.size), "down_proj"),
      "shared": drafter_files.mlp(f"{prefix}{shared}.", hidden, c.shared_size)}
  if c.corrected:
    layout["correction"] = (Part(f"{prefix}gate.e_score_correction_bias", (c.experts,)),)
  if c.gates_shared:
    layout["shared_gate"] = drafter_files.linear({f"{prefix}{shared}_gate": 1}, hidden)
  return layout
