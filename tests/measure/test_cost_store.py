"""Costs are measured once, and never read from a file that does not hold exactly them."""

import datetime
import json
import os

import pytest

from specjax import theory
from specjax.launch import strict_json
from specjax.launch.config import DecodeConfig
from specjax.measure import cost_store, costs
from tests.launch import toys

COSTS = theory.Costs(0.01, {1: 1.0, 16: 1.5}, 0.25, 0.1, 0.05, 1)


@pytest.fixture
def measured(monkeypatch):
  """Counts measurements, which take no time here."""
  calls = []
  monkeypatch.setattr(costs, "measure", lambda *args: calls.append(args) or COSTS)
  monkeypatch.setattr(costs, "with_overheads", lambda found, *args: found)
  return calls


def load(folder, prompts=((0, 1),), again=False, **keys):
  return cost_store.load_or_measure(
      toys.setup(), DecodeConfig(**keys), [list(prompt) for prompt in prompts], folder, again)


def test_costs_are_measured_once_for_each_key(measured, tmp_path):
  assert load(tmp_path) == (COSTS, None)
  path, = tmp_path.iterdir()
  os.utime(path, (1e9, 1e9))  # 2001-09-09 01:46:40 UTC
  costs, kept = load(tmp_path)
  assert costs == COSTS and datetime.datetime.fromisoformat(kept).timestamp() == 1e9 - 40
  assert len(measured) == 1
  load(tmp_path, prompts=((0, 1, 2),))  # the same capacity
  assert len(measured) == 1
  load(tmp_path, prompts=((0,), (1,)))
  load(tmp_path, drafter="layer_skip:2")
  load(tmp_path, dtype="bfloat16")
  load(tmp_path, max_new_tokens=600)
  assert len(measured) == 5 == len(list(tmp_path.iterdir()))
  load(tmp_path, temperature=1.0, gamma=7)  # nothing that costs depend on
  assert len(measured) == 5


def test_a_new_measurement_replaces_all_of_its_kind(measured, tmp_path):
  load(tmp_path, drafter="layer_skip:2")
  for size in (1, 600, 1200):
    load(tmp_path, max_new_tokens=size)
  assert load(tmp_path, max_new_tokens=600, again=True).kept is None
  assert len(measured) == 5 and len(list(tmp_path.iterdir())) == 2
  assert load(tmp_path, max_new_tokens=600).kept and len(measured) == 5
  assert load(tmp_path, max_new_tokens=1).kept is None


@pytest.mark.parametrize("damage", [
    lambda text: text[:40],
    lambda text: "[]",
    lambda text: "[" * 10000,
    lambda text: text + " " * 20000,
    lambda text: text.replace("0.25", "-0.25"),
    lambda text: text.replace("0.25", "NaN"),
    lambda text: text.replace("0.25", "9" * 400),
    lambda text: text.replace(', "16": 1.5', ""),
    lambda text: text.replace('"rows": 1}', '"rows": 2}'),
    lambda text: text.replace("0.25", "true"),
    lambda text: text.replace('"1": 1.0', '"1": 2.0'),
    lambda text: text.replace('"16"', '"1000000"'),
    lambda text: text.replace('"16"', '"x"'),
    lambda text: text.replace('"draft_step"', '"other"'),
    lambda text: text.replace('"float32"', '"float64"'),
])
def test_a_broken_file_is_measured_again(measured, tmp_path, damage, caplog):
  load(tmp_path)
  path, = tmp_path.iterdir()
  whole = path.read_text()
  path.write_text(damage(whole))
  assert path.read_text() != whole
  assert load(tmp_path) == (COSTS, None) and len(measured) == 2
  assert "measured again" in caplog.text and path.read_text() == whole


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_next_time(
    measured, tmp_path, caplog):
  (tmp_path / "file").write_text("")
  assert load(tmp_path / "file" / "folder", again=True).costs == COSTS
  assert "cannot be kept" in caplog.text


def test_old_files_go(measured, tmp_path, monkeypatch):
  monkeypatch.setattr(cost_store, "_MAX_FILES", 2)
  for age, size in ((30, 1), (20, 600), (10, 1200)):
    before = set(tmp_path.iterdir())
    load(tmp_path, max_new_tokens=size)
    new, = set(tmp_path.iterdir()) - before
    os.utime(new, (1e9 - age, 1e9 - age))
  assert len(list(tmp_path.iterdir())) == 2
  load(tmp_path, max_new_tokens=1)
  assert len(measured) == 4  # the oldest was gone


def test_the_file_says_what_it_is_about(measured, tmp_path):
  load(tmp_path)
  path, = tmp_path.iterdir()
  found = json.loads(path.read_text())
  assert found["costs"] == strict_json.plain(COSTS)
  assert found["key"]["models"] == {"target": "0" * 64} and found["key"]["rows"] == 1
  assert {"device", "cores", "dtype", "drafter", "strict", "jax"} <= set(found["key"])
