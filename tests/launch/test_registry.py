"""Rules and drafters by name."""

import pathlib
import re

import jax
import pytest

from specjax import loading, verify
from specjax.launch import registry

TINY = pathlib.Path(__file__).parents[1] / "loading" / "goldens"
NUMBERS = {"lenient": ":0.8"}


def same(one, other) -> bool:
  """Whether jit would take them for one."""
  return jax.tree.structure(one) == jax.tree.structure(other)


@pytest.fixture(scope="module")
def tiny():
  return loading.load(TINY / "llama")


@pytest.mark.parametrize("name", registry.RULES)
def test_every_rule_has_its_name(name):
  assert isinstance(registry.rule(name + NUMBERS.get(name, "")), verify.Rule)


def test_no_rule_is_left_out():
  others = {"ANY", "CHAINS", "Judgement", "Rule", "where"}  # kinds, types, what combines rules
  assert set(registry.RULES) == set(verify.__all__) - others


def test_numbers_reach_the_rule():
  def leaves(rule):
    return [float(x) for x in jax.tree.leaves(rule)]

  assert leaves(registry.rule("typical:0.25,0.5")) == [0.25, 0.5]
  assert leaves(registry.rule("typical:0.25"))[0] == 0.25
  assert same(registry.rule("specinfer:2"), verify.specinfer(2))
  assert not same(registry.rule("specinfer:2"), verify.specinfer(3))


@pytest.mark.parametrize("spec, complaint", [
    ("tokens", "did you mean 'token'"),
    ("", "known are block"),
    ("lenient", "takes factor, got 0"),
    ("lenient:x", "'x' is not a number"),
    ("lenient:0.5,0.5", "takes factor, got 2"),
    ("lenient:1.5", "factor"),
    ("token:1", "no numbers"),
    ("specinfer:1.5", "not an integer"),
])
def test_a_bad_rule_is_explained(spec, complaint):
  with pytest.raises(ValueError, match=complaint):
    registry.rule(spec)


@pytest.mark.parametrize("spec, usage", [
    ("ngram:3", "should be ngram"), ("table", "should be table:ORDER"),
    ("smollm2:1", "should be smollm2")])
def test_what_stands_behind_a_name_is_checked(tiny, spec, usage):
  with pytest.raises(ValueError, match=usage):
    registry.check_drafter(spec)
  with pytest.raises(ValueError, match=usage):
    registry.drafter(spec, 3, tiny, loading.load)


def test_help_names_everything():
  told = registry.drafters_help()
  assert all(f"\n  {name}" in f"\n{told}" for name in registry.DRAFTERS)
  assert "layer_skip[:LAYERS]: " in told and "MODULE:FUNCTION: " in told and "PATH: " in told
  rules = registry.rules_help().split(", ")
  assert [re.match(r"\w+", usage).group() for usage in rules] == [*registry.RULES, "MODULE"]
  assert {"token", "lenient:FACTOR", "typical[:EPSILON,DELTA]", "specinfer[:WIDTH]"} <= set(rules)


def test_drafters_by_name(tiny):
  built, params, models = registry.drafter("ngram", 3, tiny, loading.load)
  assert (built.nodes, params, models) == (3, None, {})
  built, params, models = registry.drafter("layer_skip:1", 2, tiny, loading.load)
  assert (built.nodes, params, models) == (2, None, {})
  halved, _, _ = registry.drafter("layer_skip", 2, tiny, loading.load)  # half of two layers
  assert same(halved, built)
  built, params, models = registry.drafter(str(TINY / "llama"), 4, tiny, loading.load)
  assert built.nodes == 4 and params is not None and models == {"drafter": tiny.sha256}


def test_drafts_that_end_early(tiny):
  for spec in ("layer_skip:1", str(TINY / "llama")):
    built, *_ = registry.drafter(spec, 3, tiny, loading.load, 0.25)
    assert built.abstains and 0.25 in [float(x) for x in jax.tree.leaves(built)]
  with pytest.raises(ValueError, match="config.stop_below: the drafter ngram cannot"):
    registry.drafter("ngram", 3, tiny, loading.load, 0.25)


@pytest.mark.parametrize("spec, complaint", [
    ("ngrams", "did you mean 'ngram'"),
    ("/no/such/model", "neither the path"),
    ("layer_skip:0", "layers 1 to 2"),
    ("layer_skip:3", "layers 1 to 2"),
    ("layer_skip:x", "not an integer"),
])
def test_a_bad_drafter_is_explained(tiny, spec, complaint):
  with pytest.raises(ValueError, match=complaint):
    registry.drafter(spec, 3, tiny, loading.load)


def test_tables_are_targets_and_drafters():
  model = registry.table("table:2")
  assert model.target().vocab_size == model.config.vocab_size
  built, params, models = registry.drafter("table:1", 2, model, registry.table)
  assert built.nodes == 2 and params.ndim == 2 and set(models) == {"drafter"}


def test_the_default_model_drafts_under_its_name(tiny):
  asked = []
  registry.drafter("smollm2", 2, tiny, lambda path: asked.append(path) or tiny)
  assert asked == ["smollm2"]


def test_a_table_has_no_layers():
  with pytest.raises(ValueError, match="'layer_skip:1': table:2 has no layers"):
    registry.drafter("layer_skip:1", 2, registry.table("table:2"), registry.table)


@pytest.mark.parametrize("spec, message", [
    ("table:", "'' is not an integer"), ("table:x", "'x' is not an integer"),
    ("table:7", "order of a table model")])
def test_there_are_few_tables(spec, message):
  with pytest.raises(ValueError, match=message):
    registry.table(spec)
