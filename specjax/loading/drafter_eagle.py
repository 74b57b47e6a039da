"""EAGLE-1 and EAGLE-3 as they are published: SafeAILab, SpecForge and speculators (vLLM).

The layouts name tensors and count layers differently. In `Eagle3Config.captures` hidden states are
counted as in `types.Target.captures`: i is the input of layer i, and the output of layer i - 1.

  SafeAILab    midlayer.*; captures are fixed: inputs of layers 2, L // 2, L - 3
  SpecForge    midlayer.*; eagle_config.eagle_aux_hidden_state_layer_ids are layers' outputs
  speculators  layers.0.*; eagle_aux_hidden_state_layer_ids at the top are layers' inputs

`norm_output` has two meanings. It is read here as vLLM, SGLang and speculators do (what is fed back
is normed; absent is false), not as SpecForge's own training code (whether there is a norm at all).
"""

from specjax.loading import drafter_config, drafter_files
from specjax.loading.drafter_files import Files
from specjax.loading.error import LoadError
from specjax.models.config import ModelConfig
from specjax.models.heads.eagle import Eagle1Config, Eagle3Config
from specjax.types import PyTree


def eagle1(files: Files, target: ModelConfig, dtype: str) -> tuple[Eagle1Config, PyTree]:
  """EAGLE-1 (or EAGLE-2, which has the same weights) in the authors' layout."""
  biased = "layers.0.self_attn.q_proj.bias" in files.tensors
  wanted = files.config.get("qkv_bias", False)
  if biased != bool(wanted):
    raise LoadError(
        f"{files.path}: qkv_bias is {wanted!r:.20}, but the file has "
        f"{'such biases' if biased else 'no such biases'}.")
  # The authors' code knows no head_dim, and no rope_theta where the key is absent.
  changes = dict(
      head_dim=None, model_type="qwen2" if biased else "llama", sliding_window=None)
  layer = drafter_config.layer(files, files.config | changes, dtype)
  drafter_config.check_target(files, layer, target)
  config = Eagle1Config(
      layer, (target.num_layers,), fc_bias=files.config.get("bias", True) is not False)
  table = (layer.vocab_size, layer.hidden_size)
  layout = {"fc": drafter_files.linear(
      {"fc": layer.hidden_size}, 2 * layer.hidden_size, config.fc_bias)}
  if "embed_tokens.weight" in files.tensors:
    layout["embedding"] = drafter_files.table("embed_tokens", *table)
  for i in range(layer.num_layers):
    layout[f"layer_{i}"] = drafter_files.layer(f"layers.{i}.", layer, normed=i > 0)
  return config, drafter_files.assemble(files, layout, dtype, ignored=())


def eagle3(files: Files, target: ModelConfig, dtype: str) -> tuple[Eagle3Config, PyTree]:
  """EAGLE-3 in any of its layouts."""
  speculators = files.config.get("speculators_model_type") == "eagle3"
  config = (_speculators if speculators else _midlayer)(files, target, dtype)
  params = drafter_files.assemble(
      files, _layout(files, config, "layers.0." if speculators else "midlayer."), dtype)
  ids = drafter_files.target_ids(files, config.draft_vocab, config.layer.vocab_size)
  return config, params if ids is None else params | {"target_ids": ids}


def _config(files: Files, layer: ModelConfig, captures, target: ModelConfig) -> Eagle3Config:
  size = drafter_config.number(files, "target_hidden_size", layer.hidden_size)
  drafter_config.check_target(files, layer, target, size)
  config = Eagle3Config(
      layer, captures, size, drafter_config.number(files, "draft_vocab_size", layer.vocab_size),
      **{key: drafter_config.switch(files, key) for key in (
          "norm_before_residual", "norm_before_fc", "fc_norm", "norm_output")})
  if config.norm_before_fc and config.fc_norm:
    raise LoadError(
        f"{files.path / 'config.json'}: norm_before_fc and fc_norm are both true; only one norm "
        f"can stand before fc.")
  if layer.hidden_size != target.hidden_size and "embed_tokens.weight" not in files.tensors:
    raise LoadError(
        f"{files.path}: the tensor embed_tokens.weight is missing, and the target's embedding of "
        f"size {target.hidden_size} does not fit a drafter of size {layer.hidden_size}.")
  return config


def _midlayer(files: Files, target: ModelConfig, dtype: str) -> Eagle3Config:
  """SafeAILab's and SpecForge's configuration."""
  layers = target.num_layers
  official = files.config.get("architectures") != ["LlamaForCausalLMEagle3"]
  changes = dict(model_type="llama", num_hidden_layers=1)
  scaling = files.config.get("rope_scaling")
  if official:
    changes |= dict(head_dim=None)
    if isinstance(scaling, dict) and "linear" in (scaling.get("type"), scaling.get("rope_type")):
      changes |= dict(rope_theta=None)  # the authors' scaled positions know one base only
  layer = drafter_config.layer(files, files.config | changes, dtype)
  block = drafter_config.block(files, "eagle_config")
  if official:
    captures = tuple(i for i in range(layers) if i in (2, layers // 2, layers - 3))
  elif "layer_ids" in block:
    captures = drafter_config.captures(files, block["layer_ids"], 0, target)
  else:
    outputs = block.get("eagle_aux_hidden_state_layer_ids", [1, layers // 2 - 1, layers - 4])
    captures = drafter_config.captures(files, outputs, 1, target)
  return _config(files, layer, captures, target)


def _speculators(files: Files, target: ModelConfig, dtype: str) -> Eagle3Config:
  values = drafter_config.block(files, "transformer_layer_config")
  layers = target.num_layers
  ids = files.config.get("eagle_aux_hidden_state_layer_ids") or [2, layers // 2, layers - 3]
  captures = drafter_config.captures(files, ids, 0, target)
  return _config(files, drafter_config.layer(files, values, dtype), captures, target)


def _layout(files: Files, config: Eagle3Config, first: str) -> PyTree:
  layer, states = config.layer, len(config.captures)
  hidden = layer.hidden_size
  joined = drafter_files.layer(first, layer, inputs=2 * hidden)
  joined["embed_norm"] = joined.pop("attn_norm")
  layout = {
      "fc": drafter_files.linear({"fc": hidden}, states * config.target_size),
      "layer_0": joined | {"hidden_norm": drafter_files.norm(first + "hidden_norm", hidden)},
      "norm": drafter_files.norm("norm", hidden),
      "head": drafter_files.table("lm_head", config.draft_vocab, hidden)}
  if "embed_tokens.weight" in files.tensors:
    layout["embedding"] = drafter_files.table("embed_tokens", layer.vocab_size, hidden)
  if config.norm_before_fc:
    layout["input_norm"] = drafter_files.norm("input_norm", states * config.target_size)
  if config.fc_norm:
    layout |= {f"fc_norm_{i}": drafter_files.norm(f"fc_norm.{i}", config.target_size)
               for i in range(states)}
  for i in range(1, layer.num_layers):
    layout[f"layer_{i}"] = drafter_files.layer(f"layers.{i}.", layer)
  return layout
