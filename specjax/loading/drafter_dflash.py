"""DFlash (z-lab, speculators) and DSpark (DeepSpec) as they are published.

Layers are counted by their outputs in z-lab's and DeepSpec's `target_layer_ids`, and by their
inputs in the speculators layout's `aux_hidden_state_layer_ids`.
"""

from typing import Any

from specjax.loading import drafter_config, drafter_files
from specjax.loading.drafter_files import Files
from specjax.loading.error import LoadError
from specjax.models.config import ModelConfig
from specjax.models.heads.dflash import DFlashConfig
from specjax.types import PyTree


def dflash(files: Files, target: ModelConfig, dtype: str) -> tuple[DFlashConfig, PyTree]:
  """DFlash in z-lab's or the speculators layout."""
  if files.config.get("speculators_model_type") == "dflash":
    return _load(files, _speculators(files, target, dtype), dtype)
  block = drafter_config.block(files, "dflash_config")
  merged = files._replace(config=files.config | block)
  return _load(files, _official(merged, target, dtype), dtype)


def dspark(files: Files, target: ModelConfig, dtype: str) -> tuple[DFlashConfig, PyTree]:
  """DSpark in DeepSpec's layout."""
  return _load(files, _official(files, target, dtype, from_anchor=True, **_markov(files)), dtype)


def _markov(files: Files) -> dict[str, Any]:
  """The heads that DSpark adds."""
  kind = files.config.get("markov_head_type", "vanilla")
  if kind != "vanilla":
    raise LoadError(
        f"{files.path / 'config.json'}: only markov_head_type 'vanilla' is supported, found "
        f"{kind!r:.80}.")
  return dict(
      markov_rank=drafter_config.number(files, "markov_rank"),
      confidence=drafter_config.switch(files, "enable_confidence_head"),
      confidence_reads_markov=drafter_config.switch(files, "confidence_head_with_markov"))


def _official(files: Files, target: ModelConfig, dtype: str, **more) -> DFlashConfig:
  values = files.config
  layer = drafter_config.layer(files, values | dict(model_type="qwen3"), dtype)
  if values.get("num_target_layers", target.num_layers) != target.num_layers:
    raise LoadError(
        f"{files.path}: the drafter was made for a target of {values['num_target_layers']!r:.20} "
        f"layers, but the target has {target.num_layers}.")
  ids = values.get("target_layer_ids")
  ids = _spread_evenly(target.num_layers, layer.num_layers) if ids is None else ids
  causal = values.get("is_causal", values.get("causal")) is True
  return _config(
      files, layer, target, drafter_config.captures(files, ids, 1, target),
      windows=(None,) * layer.num_layers, causal=(causal,) * layer.num_layers, **more)


def _spread_evenly(target_layers: int, layers: int) -> list[int]:
  """The authors' default: as many target layers as the drafter has, from the second on."""
  if layers == 1:
    return [target_layers // 2]
  return [round(1 + i * (target_layers - 4) / (layers - 1)) for i in range(layers)]


def _speculators(files: Files, target: ModelConfig, dtype: str) -> DFlashConfig:
  if drafter_config.switch(files, "sample_from_anchor"):
    raise LoadError(f"{files.path / 'config.json'}: sample_from_anchor is not supported.")
  values = drafter_config.block(files, "transformer_layer_config")
  kinds = values.get("layer_types")
  window = values.get("sliding_window")
  plain = dict(layer_types=None, sliding_window=None, use_sliding_window=False)
  layer = drafter_config.layer(files, values | plain, dtype)
  kinds = ["full_attention"] * layer.num_layers if kinds is None else kinds
  known = {"full_attention": None, "sliding_attention": window}
  if not isinstance(kinds, list) or len(kinds) != layer.num_layers or any(
      not isinstance(kind, str) or kind not in known for kind in kinds):
    raise LoadError(
        f"{files.path / 'config.json'}: layer_types should name {layer.num_layers} layers, each "
        f"one of {', '.join(known)}, found {kinds!r:.80}.")
  sliding = tuple(kind == "sliding_attention" for kind in kinds)
  if any(sliding) and (not isinstance(window, int) or window < 1):
    raise LoadError(
        f"{files.path / 'config.json'}: sliding_window should be a positive number, found "
        f"{window!r:.80}.")
  ids = files.config.get("aux_hidden_state_layer_ids")
  free = drafter_config.switch(files, "sliding_window_non_causal")
  return _config(
      files, layer, target, drafter_config.captures(files, ids, 0, target),
      windows=tuple(known[kind] for kind in kinds), causal=tuple(x and not free for x in sliding))


def _config(files: Files, layer: ModelConfig, target: ModelConfig, captures, **more):
  size = drafter_config.number(files, "target_hidden_size", layer.hidden_size)
  drafter_config.check_target(files, layer, target, size)
  block_size = drafter_config.number(files, "block_size")
  mask = files.config.get("mask_token_id")
  if not isinstance(mask, int) or isinstance(mask, bool) or not 0 <= mask < layer.vocab_size:
    raise LoadError(
        f"{files.path / 'config.json'}: mask_token_id should be one of the {layer.vocab_size} "
        f"tokens, found {mask!r:.80}.")
  config = DFlashConfig(
      layer, captures, size, block_size, mask,
      drafter_config.number(files, "draft_vocab_size", layer.vocab_size), **more)
  if config.drafts < 1:
    raise LoadError(
        f"{files.path / 'config.json'}: a block of {block_size} rows drafts nothing.")
  own = [x for x in ("embed_tokens", "lm_head") if f"{x}.weight" not in files.tensors]
  if own and layer.hidden_size != target.hidden_size:
    raise LoadError(
        f"{files.path}: the tensor {own[0]}.weight is missing, and the target's of size "
        f"{target.hidden_size} does not fit a drafter of size {layer.hidden_size}.")
  return config


def _load(files: Files, config: DFlashConfig, dtype: str) -> tuple[DFlashConfig, PyTree]:
  params = drafter_files.assemble(files, _layout(files, config), dtype)
  ids = drafter_files.target_ids(files, config.draft_vocab, config.layer.vocab_size)
  return config, params if ids is None else params | {"target_ids": ids}


def _layout(files: Files, config: DFlashConfig) -> PyTree:
  layer, hidden = config.layer, config.layer.hidden_size
  layout = {
      "fc": drafter_files.linear({"fc": hidden}, len(config.captures) * config.target_size),
      "hidden_norm": drafter_files.norm("hidden_norm", hidden),
      "norm": drafter_files.norm("norm", hidden)}
  for i in range(layer.num_layers):
    layout[f"layer_{i}"] = drafter_files.layer(f"layers.{i}.", layer)
  if "embed_tokens.weight" in files.tensors:
    layout["embedding"] = drafter_files.table("embed_tokens", layer.vocab_size, hidden)
  if "lm_head.weight" in files.tensors or config.draft_vocab < layer.vocab_size:
    layout["head"] = drafter_files.table("lm_head", config.draft_vocab, hidden)
  if rank := config.markov_rank:
    layout["markov_in"] = drafter_files.table("markov_head.markov_w1", layer.vocab_size, rank)
    layout["markov_out"] = drafter_files.table("markov_head.markov_w2", layer.vocab_size, rank)
  if config.confidence:
    reads = hidden + (config.markov_rank if config.confidence_reads_markov else 0)
    layout["confidence_head"] = drafter_files.linear({"confidence_head.proj": 1}, reads, True)
  return layout
