"""Which kind a published directory holds, from its configuration and the names of its tensors."""

import jax
import numpy as np
import pytest

from specjax import loading
from specjax.loading import drafter, LoadError
from tests.loading import drafter_samples
from tests.loading.drafter_samples import damaged, GOLDENS

KINDS = {
    "eagle1": "eagle1", "eagle3_official": "eagle3", "eagle3_specforge": "eagle3",
    "eagle3_specforge_31": "eagle3", "eagle3_speculators": "eagle3",
    "eagle3_speculators_31": "eagle3", "eagle3_speculators_nbfc": "eagle3", "medusa": "medusa",
    "dflash": "dflash", "dflash_speculators": "dflash", "dspark": "dspark", "mtp_qwen3": "mtp",
    "mtp_deepseek_v3": "mtp", "mtp_qwen3_next": "mtp"}


@pytest.fixture(scope="module")
def models():
  return {name: loading.load(GOLDENS / f"target_{name}") for name in ("llama", "qwen3")}


def target_of(name):
  return "llama" if name.startswith(("eagle", "medusa")) else "qwen3"


@pytest.mark.parametrize("name, kind", KINDS.items())
def test_every_layout_is_recognised(name, kind):
  assert drafter._recognise(drafter.drafter_files.read(GOLDENS / name)) == kind


@pytest.mark.parametrize("name", ["eagle1", "eagle3_official", "medusa", "dspark", "mtp_qwen3"])
def test_a_record(models, name):
  loaded = loading.load_drafter(GOLDENS / name, models[target_of(name)])
  assert loaded.kind == KINDS[name] and loaded.captures == loaded.config.captures
  assert loaded.make(2).captures == loaded.captures and len(loaded.sha256) == 64
  again = loading.load_drafter(GOLDENS / name, models[target_of(name)])
  # Equal in every static field, so jit compiles once for both.
  assert jax.tree.structure(again.make(2)) == jax.tree.structure(loaded.make(2))


def test_a_kind_can_be_forced(models):
  assert loading.load_drafter(GOLDENS / "eagle1", models["llama"], "eagle").kind == "eagle1"
  with pytest.raises(LoadError, match="kind medusa, not EAGLE"):
    loading.load_drafter(GOLDENS / "medusa", models["llama"], "eagle")
  with pytest.raises(LoadError, match="no Medusa head"):
    loading.load_drafter(GOLDENS / "eagle1", models["llama"], "medusa")
  with pytest.raises(ValueError, match="no kind of drafter 'hydra'"):
    loading.load_drafter(GOLDENS / "eagle1", models["llama"], "hydra")


@pytest.mark.parametrize("name", ["eagle3_speculators", "medusa", "dflash"])
def test_a_drafter_of_another_target_is_refused(models, name):
  other = models[target_of(name)]
  other = other._replace(config=other.config.__class__(**(vars(other.config) | dict(
      hidden_size=32, vocab_size=100))))
  with pytest.raises(LoadError, match="made for another target"):
    loading.load_drafter(GOLDENS / name, other)


def test_what_is_no_drafter_is_refused(models, tmp_path):
  with pytest.raises(LoadError, match="not a drafter of a supported kind.*lm_head.weight"):
    loading.load_drafter(GOLDENS / "target_llama", models["llama"])
  path = damaged(tmp_path, "eagle3_speculators", dict(speculators_model_type="peagle"))
  with pytest.raises(LoadError, match="speculators_model_type 'peagle' are not supported"):
    loading.load_drafter(path, models["llama"])
  table = models["llama"]._replace(config=None)
  with pytest.raises(ValueError, match="no hidden states"):
    loading.load_drafter(GOLDENS / "eagle1", table)


def test_weights_are_those_of_the_file(models):
  loaded = loading.load_drafter(GOLDENS / "eagle3_official", models["llama"])
  arrays = drafter_samples.arrays("eagle3_official")
  np.testing.assert_array_equal(loaded.params["fc"]["weights"], arrays["fc.weight"])
  np.testing.assert_array_equal(loaded.params["target_ids"], arrays["d2t"] + np.arange(80))
