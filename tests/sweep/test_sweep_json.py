"""A folder takes the results of one sweep, and of wider grids of the same sweep."""

import json

import pytest

from specjax.sweep import plan, sweep_json


def make(grid=None, stop=(), **keys):
  axes = [{axis: list(values)} for axis, values in (grid or dict(gamma=(1, 2))).items()]
  if not any("prompts" in group for group in axes):
    axes.append({"prompts": ["chat"]})
  return plan.make(axes, keys, "some.py", 0, True, list(stop))


def manifest(version="1", **models):
  return dict(seed=0, config={}, models=models, versions=dict(jax=version), command=["x", version])


def begun(folder, **models):
  assert sweep_json.write(folder, make(), manifest(**models)) == {}
  return json.loads((folder / "sweep.json").read_text())


def test_a_fresh_folder_is_welcome_and_then_described(tmp_path):
  sweep_json.check(tmp_path, make())
  found = begun(tmp_path, m="0")
  assert found["axes"]["gamma"] == [1, 2] and found["base"]["config"]["max_new_tokens"] == 128
  assert found["manifest"]["models"] == {"m": "0"} and len(found["prompts"]["chat"]) == 64
  assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"]


def test_more_values_and_models_are_added(tmp_path):
  begun(tmp_path, m="0")
  wider = make(dict(gamma=(2, 4), prompts=("chat", "code"), temperature=(0.0, 1.0)))
  sweep_json.check(tmp_path, wider)
  assert sweep_json.write(tmp_path, wider, manifest("2", d="1")) == {"versions.jax": ["1", "2"]}
  found = json.loads((tmp_path / "sweep.json").read_text())
  assert found["axes"]["gamma"] == [1, 2, 4] and found["axes"]["temperature"] == [0.0, 1.0]
  assert set(found["prompts"]) == {"chat", "code"}
  assert found["manifest"]["models"] == {"m": "0", "d": "1"}
  assert found["manifest"]["versions"] == {"jax": "1"}


def test_the_same_again_changes_nothing(tmp_path):
  begun(tmp_path)
  before = (tmp_path / "sweep.json").stat()
  sweep_json.write(tmp_path, make(), manifest())
  assert (tmp_path / "sweep.json").stat() == before


@pytest.mark.parametrize("other, complaint", [
    (dict(max_new_tokens=7), "config.max_new_tokens: 128 there, 7 now"),
    (dict(stop=["x"]), "stop: [] there, ['x'] now"),
    (dict(grid=dict(top_p=(0.5, 1.0))), "axes: "),
])
def test_another_sweep_is_refused_and_nothing_touched(tmp_path, other, complaint):
  begun(tmp_path)
  before = (tmp_path / "sweep.json").read_bytes()
  with pytest.raises(ValueError) as error:
    sweep_json.check(tmp_path, make(**other))
  assert complaint in str(error.value) and "Choose another --out" in str(error.value)
  assert (tmp_path / "sweep.json").read_bytes() == before


def test_other_prompts_under_the_same_name_are_refused(tmp_path):
  file = tmp_path / "p.jsonl"
  file.write_text('{"prompt": "a"}\n')
  sweep_json.write(tmp_path, make(dict(prompts=[str(file)])), manifest())
  file.write_text('{"prompt": "b"}\n')
  with pytest.raises(ValueError, match="prompts .*p.jsonl"):
    sweep_json.check(tmp_path, make(dict(prompts=[str(file)])))


def test_other_weights_are_refused(tmp_path):
  begun(tmp_path, m="0")
  with pytest.raises(ValueError, match="'m' had the sha256 0 when it was begun, and has 1 now"):
    sweep_json.write(tmp_path, make(), manifest(m="1"))


@pytest.mark.parametrize("text", [
    b"", b"[]", b"{}", b"{" * 100_000, b"\xff", b'{"base": {}, "axes": 3}',
    b'{"base":{},"axes":{},"prompts":{},"manifest":{"models":1}}'])
def test_a_damaged_file_is_refused(tmp_path, text):
  (tmp_path / "sweep.json").write_bytes(text)
  with pytest.raises(ValueError, match="sweep.json does not describe a sweep"):
    sweep_json.check(tmp_path, make())


def test_results_without_it_are_nobodys(tmp_path):
  (tmp_path / "results.jsonl").write_text("{}\n")
  with pytest.raises(ValueError, match="holds results but no sweep.json"):
    sweep_json.check(tmp_path, make())
