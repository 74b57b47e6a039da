"""The audit of invariance: it holds for the toy, and can fail."""

import dataclasses

import jax
import numpy as np
import pytest

from experiments.audits import audit, models
from specjax import keys

KEY = keys.from_seed(3)


@pytest.fixture(scope="module")
def audited():
  return models.load("tiny", "float32")


def case(**changes):
  base = dict(drafter="ngram", gamma=3, rule="gumbel", temperature=0.7, strict=8, batch_size=1,
              reverse=False)
  return audit.Case(**(base | changes))


def test_strict_and_normal_cases_hold(audited):
  grid = [case(), case(drafter="layer_skip:1", gamma=7), case(rule="token", temperature=0.0),
          case(batch_size=4, reverse=True), case(strict=0, batch_size=4, reverse=True)]
  findings = audit.audit(audited, grid, KEY, 12)
  for finding in findings:
    assert finding.holds, finding
    assert finding.tokens == 4 * 12
  assert [f.prints for f in findings] == [48, 48, 48, 48, 0]


def test_a_rule_whose_text_depends_on_the_draft_is_caught(audited):
  """`token` at a temperature keeps the law, not the text: most texts part, far from any tie."""
  for window in (8, 0):
    found, = audit.audit(audited, [case(rule="token", strict=window)], KEY, 12)
    assert not found.holds
    assert found.mismatches == len(found.divergences) > 0
    assert max(gap for *_, gap in found.divergences) > audit.NEAR_TIE


def test_other_bits_are_caught_though_the_texts_agree(audited, monkeypatch):
  """A model whose norms differ in the seventh digit writes the same text with other bits."""
  decoder = audit._decoder
  config = dataclasses.replace(audited.model.config, norm_eps=1.01e-5)
  other = audited.model._replace(config=config)
  monkeypatch.setattr(audit, "_decoder", lambda model, case: decoder(other, case))
  found, = audit.audit(audited, [case(temperature=0.0)], KEY, 12)
  assert found.unequal_prints > 0 and not found.holds


def test_the_grid_varies_everything_it_claims():
  grid = audit.cases(8, (1, 3, 7), (0.0, 0.7, 1.0), 8, 4)
  assert len(set(grid)) == len(grid)
  for field, values in dict(
      drafter={"ngram", "layer_skip:8"}, gamma={1, 3, 7}, rule={"token", "gumbel"},
      temperature={0.0, 0.7, 1.0}, strict={0, 8}, batch_size={1, 4}, reverse={True, False}).items():
    assert {getattr(c, field) for c in grid} == values
  assert all(c.rule == "gumbel" for c in grid if c.temperature > 0)


def test_gaps_include_the_noise(audited):
  """At a temperature the decisive gap is that of the noisy scores, and differs between rows."""
  gaps = {
      audit._gap(audited, case(temperature=t), KEY, row, []) for t in (0, 0.7) for row in (0, 1)}
  assert len(gaps) == 4 and min(gaps) > 0


def test_random_models_need_no_download():
  made = models.load("tiny", "bfloat16")
  assert made.model.config.dtype == "bfloat16"
  assert all(0 <= token < 97 for prompt in made.prompts for token in prompt)
  assert {str(x.dtype) for x in jax.tree.leaves(made.model.params)} == {"bfloat16"}
  assert np.unique([len(p) for p in made.prompts]).size == 4
