"""The config.json of Llama-family models, in this library's terms.

Defaults of absent keys are those of the `transformers` configuration classes.
"""

from pathlib import Path
from typing import Any

from specjax.loading.error import LoadError
from specjax.models.config import ModelConfig, RopeScaling

_CLASSES = {
    "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
_REAL = (int, float)
_LARGEST = 1e30  # beyond any meaning, and within float32

# Keys of rope_scaling / rope_parameters that are understood, by kind.
_ROPE_KEYS = {"rope_type", "type", "rope_theta", "factor", "original_max_position_embeddings"}
_MORE_ROPE_KEYS = {
    "default": set(),
    "linear": set(),
    "llama3": {"low_freq_factor", "high_freq_factor"},
    "yarn": {"beta_fast", "beta_slow", "attention_factor", "truncate"},
}


class _Keys:
  """Typed access to a JSON object; null counts as absent."""

  def __init__(self, path: Path, values: dict[str, Any]):
    self.path, self.values = path, values

  def get(self, key: str, kind, default=None):
    value = self.values.get(key)
    value = default if value is None else value
    if value is None:
      raise LoadError(f"{self.path}: the key {key!r} is missing.")
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
      raise LoadError(
          f"{self.path}: {key!r} has the wrong type, found {str(value)[:80]!r} of type "
          f"{type(value).__name__}.")
    return value

  def real(self, key: str, default: float | None = None) -> float:
    value = self.get(key, _REAL, default)
    if not 0 < value <= _LARGEST:
      raise LoadError(
          f"{self.path}: {key!r} should be a positive number, found {str(value)[:80]}.")
    return float(value)

  def expect(self, key: str, wanted, default):
    if (found := self.values.get(key, default)) not in (wanted, None):
      raise LoadError(
          f"{self.path}: only {key} = {wanted!r} is supported, found {str(found)[:80]!r}.")


def _family(keys: _Keys) -> str:
  """The model type, from `model_type` and the class in `architectures`, which must agree."""
  kind = keys.get("model_type", str)
  classes = keys.get("architectures", list, [_CLASSES.get(kind)])
  if kind not in _CLASSES or classes != [_CLASSES[kind]]:
    raise LoadError(
        f"{keys.path}: the architecture {str(classes)[:80]} of model type {kind!r:.80} is not "
        f"supported; expected one of {', '.join(_CLASSES.values())}.")
  return kind


def _refuse_relatives(keys: _Keys, family: str):
  keys.expect("hidden_act", "silu", "silu")
  keys.expect("mlp_bias", False, False)
  keys.expect("quantization_config", None, None)
  keys.expect("partial_rotary_factor", 1.0, 1.0)
  sliding = {"mistral": 4096}.get(family) if "sliding_window" not in keys.values else (
      keys.values["sliding_window"])
  # Qwen configs carry a window size that only use_sliding_window turns on.
  in_use = keys.values.get("use_sliding_window", family == "mistral")
  if sliding and in_use:
    raise LoadError(
        f"{keys.path}: attention with a sliding window ({sliding!r:.80}) is not supported.")
  for kind in keys.get("layer_types", list, []):
    if kind != "full_attention":
      raise LoadError(f"{keys.path}: layers of type {kind!r:.80} are not supported.")


def _rope(keys: _Keys) -> tuple[float, RopeScaling | None]:
  """Base and scaling, from `rope_parameters` (recent files) or `rope_theta` and `rope_scaling`."""
  block = keys.get("rope_parameters", dict, keys.get("rope_scaling", dict, {}))
  rope = _Keys(keys.path, block)
  theta = rope.real("rope_theta", keys.real("rope_theta", 10000.0))
  kind = rope.get("rope_type", str, rope.get("type", str, "default"))
  if kind not in _MORE_ROPE_KEYS:
    raise LoadError(
        f"{keys.path}: rope scaling {kind!r:.80} is not supported; expected one of "
        f"{', '.join(_MORE_ROPE_KEYS)}.")
  rope.expect("truncate", True, True)
  if unknown := [k for k in block if k not in _ROPE_KEYS | _MORE_ROPE_KEYS[kind]]:
    raise LoadError(f"{keys.path}: the rope parameter {unknown[0]!r:.80} is not supported.")
  if kind == "default":
    return theta, None
  length = rope.get("original_max_position_embeddings", int, 0)
  factor = rope.real("factor")
  if kind == "linear":
    return theta, RopeScaling("linear", factor, length)
  if kind == "llama3":
    return theta, RopeScaling(
        "llama3", factor, length,
        low_freq_factor=rope.real("low_freq_factor"),
        high_freq_factor=rope.real("high_freq_factor"))
  factor_given = block.get("attention_factor") is not None
  return theta, RopeScaling(
      "yarn", factor, length,
      beta_fast=rope.real("beta_fast", 32.0),
      beta_slow=rope.real("beta_slow", 1.0),
      attention_factor=rope.real("attention_factor") if factor_given else None)


def config(path: Path, values: dict[str, Any], dtype: str) -> ModelConfig:
  """The model's shape.

  Args:
    path: The file that `values` were read from, for messages.
    values: The content of config.json.
    dtype: Of the weights in memory.

  Raises:
    LoadError: an unsupported architecture or feature, or a missing or mistyped key.
  """
  keys = _Keys(path, values)
  family = _family(keys)
  _refuse_relatives(keys, family)
  heads, hidden = keys.get("num_attention_heads", int), keys.get("hidden_size", int)
  default_dim = 128 if family == "qwen3" else hidden // max(heads, 1)
  attention_bias = keys.get("attention_bias", bool, False) and family in ("llama", "qwen3")
  theta, scaling = _rope(keys)
  try:
    return ModelConfig(
        vocab_size=keys.get("vocab_size", int),
        hidden_size=hidden,
        mlp_size=keys.get("intermediate_size", int),
        num_layers=keys.get("num_hidden_layers", int),
        num_heads=heads,
        num_kv_heads=keys.get("num_key_value_heads", int, heads),
        head_dim=keys.get("head_dim", int, default_dim),
        max_length=keys.get("max_position_embeddings", int),
        rope_theta=theta,
        rope_scaling=scaling,
        norm_eps=keys.real("rms_norm_eps", 1e-6),
        tied_head=keys.get("tie_word_embeddings", bool, False),
        qkv_bias=family == "qwen2" or attention_bias,
        out_bias=attention_bias,
        qk_norm=family == "qwen3",
        dtype=dtype)
  except LoadError:
    raise
  except ValueError as error:
    raise LoadError(f"{path}: impossible configuration: {error}") from error
