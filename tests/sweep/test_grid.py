"""Axes from flags and files, and the points of their product."""

import pytest

from specjax.sweep import grid


def values(axis, *texts):
  return grid.from_flags({axis: texts})[0][axis]


@pytest.mark.parametrize("axis, texts, expected", [
    ("gamma", ["1,2,4"], [1, 2, 4]),
    ("gamma", ["1, 2", "4"], [1, 2, 4]),  # repeated flags
    ("gamma", ["auto,3"], ["auto", 3]),  # for the configuration to accept or refuse
    ("temperature", ["0,0.6,1"], [0.0, 0.6, 1.0]),
    ("strict", ["true,False"], [True, False]),
    ("seed", ["0,7"], [0, 7]),
    ("rule", ["token,typical:0.09,0.3,block"], ["token", "typical:0.09,0.3", "block"]),
    ("rule", ["typical:0.09,0.3", "lenient:0.8,1e-1"], ["typical:0.09,0.3", "lenient:0.8,1e-1"]),
    ("rule", ["token,0.3"], ["token", "0.3"]),
    ("drafter", ["ngram,layer_skip:10,a/b"], ["ngram", "layer_skip:10", "a/b"]),
    ("prompts", ["chat,12.jsonl"], ["chat", "12.jsonl"]),
])
def test_the_values_of_a_flag(axis, texts, expected):
  found = values(axis, *texts)
  assert found == expected and list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize("text", ["", ",", "1,,2", "1,"])
def test_an_empty_value_is_refused(text):
  with pytest.raises(ValueError, match="'gamma' has an empty value"):
    values("gamma", text)


def test_points_are_the_product_and_axes_may_move_together():
  made = grid.from_config(
      dict(temperature=(0.0, 1.0), zip=[dict(gamma=[7, 3], drafter=["ngram", "layer_skip:1"])]),
      "f")
  assert grid.points(made) == [
      dict(gamma=7, drafter="ngram", temperature=0.0),
      dict(gamma=7, drafter="ngram", temperature=1.0),
      dict(gamma=3, drafter="layer_skip:1", temperature=0.0),
      dict(gamma=3, drafter="layer_skip:1", temperature=1.0)]


def test_no_axis_gives_one_point():
  assert grid.points([]) == [{}]


@pytest.mark.parametrize("entry, complaint", [
    (dict(gama=(1,)), "f.py: sweep has an unknown axis 'gama'; did you mean 'gamma'?"),
    (dict(zip=[dict(seeds=(1,))]), "unknown axis 'seeds'; did you mean 'seed'?"),
    (dict(rule="token"), "sweep.rule is a list of values, got 'token'"),
    (dict(gamma=(1,), zip=[dict(gamma=(1,))]), "names the axis 'gamma' more than once"),
    (dict(zip=[dict(gamma=(1, 2), top_p=(1,))]), "equally many values; gamma has 2, top_p has 1"),
    (dict(zip=dict(gamma=(1, 2))), "sweep.zip is a list of groups"),
    (dict(zip=[{}]), "sweep.zip is a list of groups"),
    ("gamma", "f.py: sweep is a dict of axes, got 'gamma'"),
    (None, "f.py: sweep is a dict of axes, got None"),
])
def test_a_bad_entry_is_named(entry, complaint):
  with pytest.raises(ValueError) as error:
    grid.from_config(entry, "f.py")
  assert complaint in str(error.value)


def test_an_axis_without_values_makes_no_grid():
  with pytest.raises(ValueError, match="'gamma' has no values, so the grid is empty"):
    grid.points(grid.from_config(dict(gamma=(), seed=(1, 2)), "f"))


def test_a_flag_replaces_an_axis_of_the_file():
  file = grid.from_config(dict(gamma=(1, 2), top_p=(0.5,)), "f")
  assert grid.points(grid.replace(file, [{"gamma": [8]}])) == [dict(top_p=0.5, gamma=8)]
  bound = grid.from_config(dict(zip=[dict(gamma=(1,), drafter=("ngram",))]), "f")
  with pytest.raises(ValueError, match="'gamma' moves together with drafter"):
    grid.replace(bound, [{"gamma": [8]}])
