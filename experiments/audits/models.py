"""Models and prompts to audit: the default model, or random weights that need no download."""

import jax
import jax.numpy as jnp

from experiments.audits.audit import Audited
from specjax import loading
from specjax.launch import prompts
from specjax.models import transformer
from specjax.models.config import ModelConfig

NAMES = ("default", "random", "tiny")

_SHAPES = {
    "random": dict(
        vocab_size=49152, hidden_size=576, mlp_size=1536, num_layers=30, num_heads=9,
        num_kv_heads=3, head_dim=64, max_length=8192, rope_theta=1e5),
    "tiny": dict(
        vocab_size=97, hidden_size=32, mlp_size=48, num_layers=3, num_heads=4, num_kv_heads=2,
        head_dim=8, max_length=2048),
}
_LENGTHS = {"random": (30, 60, 120, 240, 45, 90, 180, 360), "tiny": (5, 40, 17, 9)}


def load(name: str, dtype: str) -> Audited:
  """One of `NAMES` with its prompts: `random` has the default model's shape, `tiny` is a toy."""
  if name == "default":
    return _default(dtype)
  config = ModelConfig(dtype=dtype, **_SHAPES[name])
  params = transformer.init_params(config, jax.random.key(0))
  # Fresh weights give almost uniform laws; spread them as those of a trained model are.
  params = dict(params, embedding=params["embedding"] * 8)
  model = loading.Model(config, params, None, f"the {name} model", "0" * 64)
  return Audited(model, [_text(length, config.vocab_size) for length in _LENGTHS[name]])


def _text(length: int, vocab: int) -> list[int]:
  return [(7 * i * i + 3 * length) % vocab for i in range(length)]


def _default(dtype: str) -> Audited:
  """Every second prompt of the built-in set, so that each category is there."""
  model = loading.default_model(dtype)
  texts = [
      model.tokenizer.encode_chat([dict(role="user", content=conversation.turns[0])])
      for conversation in prompts.load("mini")[::2]]
  return Audited(model._replace(params=jax.tree.map(jnp.asarray, model.params)), texts)
