"""Every cell is checked before anything runs, and known by what decides about its tokens."""

import pytest

from specjax.sweep import plan


def make(*grid, seed=0, template=False, stop=(), **keys):
  grid = [{axis: list(values)} for group in grid for axis, values in group.items()]
  if not any("prompts" in group for group in grid):
    grid.append({"prompts": ["chat"]})
  return plan.make(grid, keys, "some.py", seed, template, stop)


def test_cells_have_the_configuration_with_the_axes_in_place():
  made = make(dict(gamma=(1, 2), top_p=(0.5,)), max_new_tokens=7, gamma=5)
  assert [cell.job.config.gamma for cell in made.cells] == [1, 2]
  assert all(cell.job.config.max_new_tokens == 7 for cell in made.cells)
  assert set(made.cells[0].axes) == {*plan.ALWAYS, "top_p"}
  assert made.axes["gamma"] == [1, 2] and made.varied == ["gamma"]
  assert made.base["config"]["max_new_tokens"] == 7 and "gamma" not in made.base["config"]
  assert made.label(made.cells[1]) == "gamma=2"


def test_numbers_are_those_of_the_configuration():
  cell, = make(dict(temperature=(1,))).cells
  assert type(cell.axes["temperature"]) is float


def test_the_id_tells_jobs_apart_and_nothing_else(tmp_path):
  def ids(*grid, **options):
    return [cell.id for cell in make(*grid, **options).cells]

  one, = ids()
  assert one == ids(dict(gamma=(4,)))[0] == ids(dict(gamma=(1, 4)))[1]
  others = [
      ids(dict(gamma=(3,))), ids(seed=1), ids(template=True), ids(stop=("a",)), ids(strict=True),
      ids(dict(prompts=["code"]))]
  assert len({one, *(other for other, in others)}) == 7
  for name in ("a.jsonl", "b.jsonl"):  # wherever the prompts lie
    (tmp_path / name).write_text('{"prompt": "p", "name": "1"}\n')
  first, second = (ids(dict(prompts=[str(tmp_path / name)])) for name in ("a.jsonl", "b.jsonl"))
  assert first == second


@pytest.mark.parametrize("axes, complaint", [
    (dict(gamma=(1, -1)), "config.gamma must be from 0"),
    (dict(gamma=(1, "x")), "'x'"),
    (dict(temperature=(0.0, float("nan"))), "config.temperature"),
    (dict(rule=("token", "tokn")), "did you mean 'token'"),
    (dict(rule=("typical:0.09", "0.3")), "no rule '0.3'"),
    (dict(drafter=("ngram", "/none")), "'/none' is neither the path"),
    (dict(seed=(0, -1)), "A seed is an integer"),
    (dict(seed=(0, 0.5)), "A seed is an integer"),
    (dict(prompts=("chat", "none.jsonl")), "none.jsonl: there is no such file"),
    (dict(prompts=(3,)), "a sweep needs prompts"),
    (dict(strict=(True,), gamma=(7, 8)), "at most 7; got 8"),
    (dict(gamma=(1, 2, 1)), "holds a cell twice"),
    (dict(temperature=(0.0, -0.0)), "holds a cell twice"),
    (dict(gamma=()), "has no values, so the grid is empty"),
])
def test_a_bad_cell_stops_the_whole_sweep(axes, complaint):
  with pytest.raises(ValueError) as error:
    make(axes)
  assert complaint in str(error.value)


def test_equal_prompts_under_two_names_are_one_cell(tmp_path):
  for name in "ab":
    (tmp_path / name).write_text('{"prompt": "p", "name": "1"}\n')
  with pytest.raises(ValueError, match="holds a cell twice.*/b .*is.*/a"):
    make(dict(prompts=[str(tmp_path / name) for name in "ab"]))


def test_prompts_are_needed():
  with pytest.raises(ValueError, match="a sweep needs prompts"):
    plan.make([{"gamma": [1]}], {}, "some.py", 0, True, [])


def test_an_unknown_key_is_named():
  with pytest.raises(ValueError, match="some.py: unknown key 'gama'"):
    make(gama=3)
