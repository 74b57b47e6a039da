"""Rules and drafters of the user's own: found by their name, and what goes wrong told in words."""

import hashlib
import sys

import jax
import pytest

from specjax import loading, verify
from specjax.launch import registry, user_code
from specjax.types import Error
from tests.launch import forked

MODULE = '''
import jax
from specjax import drafters, verify
from specjax.verify import token


def drafter(model, gamma):
  assert model.target().vocab_size == model.config.vocab_size
  return drafters.ngram(gamma)


def with_params(model, gamma):
  return drafters.second_model(model.target(), gamma), model.params


def broken(model, gamma):
  return helper(gamma)


def helper(gamma):
  raise KeyError("weights")


def inside_jax(model, gamma):
  return jax.numpy.zeros(3).reshape(2, 2)


def nothing(model, gamma):
  pass


def rule(factor=0.5):
  return verify.lenient(factor)


def rule_of_width(width):
  assert type(width) is int
  return verify.specinfer(width)


NUMBER = 5
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("own")
  (folder / "methods_of_mine.py").write_text(MODULE)
  (folder / "does_not_parse.py").write_text("def rule(:")
  (folder / "lacks_a_package.py").write_text("import no_such_package_at_all")
  (folder / "ends.py").write_text("x = 1\nraise RuntimeError('not today')")
  (folder / "exits.py").write_text("raise SystemExit(0)")
  (folder / "empty_module.py").write_text("")
  (folder / "nested").mkdir()
  (folder / "nested" / "inner.py").write_text(MODULE)
  (folder / "table.py").write_text("raise RuntimeError('a name of the package comes first')")
  return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
  monkeypatch.chdir(folder)
  monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture(scope="module")
def model():
  return registry.table("table:1")


def built(spec, model, stop_below=None):
  return registry.drafter(spec, 3, model, registry.table, stop_below)


def test_a_drafter_of_ones_own(model, folder):
  drafter, params, files = built("methods_of_mine:drafter", model)
  assert (drafter.nodes, params) == (3, None)
  assert files == {"drafter": hashlib.sha256(MODULE.encode()).hexdigest()}
  drafter, params, _ = built("nested.inner:with_params", model)
  assert drafter.nodes == 3 and params is model.params
  registry.check_drafter("methods_of_mine:drafter")


def test_a_rule_of_ones_own():
  def numbers(spec):
    return [float(x) for x in jax.tree.leaves(registry.rule(spec))]

  assert numbers("methods_of_mine:rule") == numbers("lenient:0.5")
  assert numbers("methods_of_mine:rule:0.25") == numbers("lenient:0.25")
  made = registry.rule("methods_of_mine:rule_of_width:2")
  assert jax.tree.structure(made) == jax.tree.structure(verify.specinfer(2))


@pytest.mark.parametrize("spec", [
    "C:\\models\\small", "C:/models", "a-b:c", "methods_of_mine:", ":drafter", "a..b:c", "1a:b",
    "methods_of_mine:drafter.py", "layer_skp:10", "methods_of_mine:drafter:3", "a b:c"])
def test_an_odd_path_is_no_module(model, spec):
  for call in (lambda: built(spec, model), lambda: registry.check_drafter(spec)):
    with pytest.raises(Error, match="is neither the path of a model nor a drafter"):
      call()


def test_names_and_paths_come_first(model, folder):
  assert built("table:0", model).drafter.nodes == 3  # though there is a module of that name
  (folder / "methods_of_mine:drafter").mkdir()
  with pytest.raises(loading.LoadError, match="config.json"):
    registry.drafter("methods_of_mine:drafter", 3, model, loading.load)
  (folder / "methods_of_mine:drafter").rmdir()


@pytest.mark.parametrize("spec, complaint", [
    ("no_such_module:drafter", r"no_such_module:drafter: there is no module 'no_such_module' in "),
    ("nested.no:drafter", "there is no module 'nested.no'"),
    ("layer_skp:ten", "there is no module 'layer_skp' .* did you mean 'layer_skip'"),
    ("does_not_parse:rule", r"cannot be imported: SyntaxError: .*does_not_parse.py, line 1"),
    ("lacks_a_package:drafter",
     r"cannot be imported: ModuleNotFoundError: No module named 'no_such_package_at_all' "
     r"\(.*lacks_a_package.py, line 1\)"),
    ("ends:drafter", r"cannot be imported: RuntimeError: not today \(.*ends.py, line 2\)"),
    ("exits:drafter", r"cannot be imported: SystemExit: 0 \(.*exits.py, line 1\)"),
    ("methods_of_mine:draftr", "has no function 'draftr'; did you mean 'drafter'"),
    ("methods_of_mine:NUMBER", "has no function 'NUMBER'"),
    ("empty_module:drafter", "has no function 'drafter', nor any other"),
])
def test_a_function_that_is_not_there_is_explained(model, spec, complaint):
  for call in (lambda: built(spec, model), lambda: registry.check_drafter(spec)):
    with pytest.raises(Error, match=f"config.drafter .*{complaint}"):
      call()
  if "did you mean 'layer_skip'" not in complaint:
    with pytest.raises(Error, match=f"config.rule .*{complaint}"):
      registry.rule(spec)


@pytest.mark.parametrize("spec, complaint", [
    ("methods_of_mine:broken", r"KeyError: 'weights' \(.*methods_of_mine.py, line 21\)"),
    ("methods_of_mine:inside_jax", r"TypeError: .*\(.*methods_of_mine.py, line 25\)"),
    ("methods_of_mine:nothing",
     "nothing.model, gamma. should return a Drafter, or a pair .*, got None"),
    ("methods_of_mine:rule", r"TypeError: rule\(\) takes from 0 to 1 positional arguments"),
])
def test_a_drafter_that_cannot_be_made_is_explained(model, spec, complaint):
  with pytest.raises(Error, match=f"config.drafter {spec}: {complaint}"):
    built(spec, model)


@pytest.mark.parametrize("spec, complaint", [
    ("methods_of_mine:rule:1.5", r"Error: .*factor.* \(.*methods_of_mine.py, line \d+\)"),
    ("methods_of_mine:rule:x", "'x' is not a number"),
    ("methods_of_mine:rule:0.5,", "'' is not a number"),
    ("methods_of_mine:rule:0.5,0.5", "TypeError: rule.. takes from 0 to 1 positional arguments"),
    ("methods_of_mine:rule_of_width", "TypeError: .* missing 1 required positional"),
    ("methods_of_mine:rule_of_width:2.0", "AssertionError"),
    ("methods_of_mine:NUMBER:1", "no function 'NUMBER'"),
    ("builtins:list", r"list should return a specjax.verify.Rule, got \[\]"),
])
def test_a_rule_that_cannot_be_made_is_explained(spec, complaint):
  with pytest.raises(Error, match=f"config.rule .*{complaint}"):
    registry.rule(spec)


def test_ones_own_drafter_is_not_stopped_early(model):
  with pytest.raises(Error, match="config.stop_below: the drafter methods_of_mine:drafter cannot"):
    built("methods_of_mine:drafter", model, 0.5)


def test_only_names_are_names():
  assert user_code.parts("a.b:c:1,2") == ("a.b", "c", "1,2")
  assert user_code.parts("token") is None and user_code.parts("lenient:0.8") is None


def test_from_the_command_line(folder):
  base = [
      "experiments.decode", "--config.target=table:2", "--noapply_chat_template", "--prompt=the",
      "--config.max_new_tokens=4", "--json"]
  fine, raises, absent = forked.run([
      [*base, "--config.drafter=methods_of_mine:drafter", "--config.rule=methods_of_mine:rule:0.5"],
      [*base, "--config.drafter=methods_of_mine:broken"],
      [*base, "--config.rule=nowhere:rule"],
  ], cwd=folder)
  assert fine[0] == 0, fine[2]
  for (code, out, err), name in ((raises, "methods_of_mine:broken"), (absent, "nowhere:rule")):
    assert code == 2 and not out and len(err.splitlines()) == 1 and name in err
    assert "Traceback" not in err
