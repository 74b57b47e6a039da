"""Our loaders and decoder against what transformers computed (scripts/make_goldens.py)."""

import json
import unicodedata
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import loading
from specjax.loading import bpe
from specjax.models import transformer

GOLDENS = Path(__file__).parent / "goldens"
TOLERANCE = 2e-4  # absolute, of float32 logits
TINY = ("llama", "mistral", "qwen2", "qwen3")


def logits_of(model: loading.Model, ids: np.ndarray) -> np.ndarray:
  """float[B, T, V] of one pass over ids int32[B, T]."""
  target = transformer.target(model.config)
  cache = target.init(model.params, ids.shape[0], ids.shape[1])
  lengths = jnp.zeros(ids.shape[0], jnp.int32)
  output = jax.jit(target.forward)(model.params, cache, jnp.asarray(ids), lengths, None, None)
  return np.asarray(output.logits)


@pytest.mark.parametrize("name", TINY)
def test_tiny_models_give_the_logits_of_transformers(name):
  golden = np.load(GOLDENS / name / "logits.npz")
  ours = logits_of(loading.load(GOLDENS / name), golden["ids"])
  np.testing.assert_allclose(ours, golden["logits"], rtol=0, atol=TOLERANCE)


def test_the_goldens_depend_on_the_order_of_positions():
  """Scaled rotary positions matter in them: plain ones give logits far outside the tolerance."""
  golden = np.load(GOLDENS / "llama" / "logits.npz")
  model = loading.load(GOLDENS / "llama")
  plain = model._replace(config=type(model.config)(**{**vars(model.config), "rope_scaling": None}))
  assert np.abs(logits_of(plain, golden["ids"]) - golden["logits"]).max() > 100 * TOLERANCE


@pytest.mark.parametrize("prompt", range(3))
def test_the_default_model_gives_the_logits_of_transformers(default_model, prompt):
  golden = np.load(GOLDENS / "smollm2_logits.npz")
  ids = golden[f"ids_{prompt}"]
  assert default_model.tokenizer.encode(str(golden["prompts"][prompt])) == ids.tolist()
  ours = logits_of(default_model, ids[None])[0]
  np.testing.assert_allclose(
      ours[:, golden["columns"]], golden[f"logits_{prompt}"], rtol=0, atol=TOLERANCE)
  top = golden[f"top_{prompt}"]
  np.testing.assert_allclose(
      np.take_along_axis(ours, top, 1), golden[f"top_logits_{prompt}"], rtol=0, atol=TOLERANCE)
  np.testing.assert_array_equal(ours.argmax(-1), top[:, 0])


def test_the_default_tokenizer_gives_the_ids_of_transformers(default_model):
  golden = json.loads((GOLDENS / "tokens.json").read_text())
  assert len(golden["strings"]) >= 200
  for text, ids in zip(golden["strings"], golden["smollm2_ids"], strict=True):
    assert default_model.tokenizer.encode(text) == ids, repr(text)


def test_qwen2_texts_are_cut_as_in_transformers():
  golden = json.loads((GOLDENS / "tokens.json").read_text())
  family = bpe.FAMILIES["qwen2"]
  for text, pieces in zip(golden["strings"], golden["qwen2_pieces"], strict=True):
    text = unicodedata.normalize("NFC", text)
    assert [piece for piece, _ in family.cut().pre_tokenize_str(text)] == pieces, repr(text)
