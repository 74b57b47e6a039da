"""What the programs load: a program that measures no peer does not load what does."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = sorted(path.stem for path in (ROOT / "experiments").glob("*.py"))
LOADS = {  # the packages below experiments/ that a program may reach, itself or through others
    "bench": {"benchmarks"}, "device_check": {"audits"}, "invariance": {"audits"},
    "reproduce": {"papers"}}


def modules(name: str) -> set[str]:
  """The modules of experiments/ that `name` imports, directly or through each other."""
  found, left = set(), [name]
  while left:
    path = ROOT.joinpath(*left.pop().split("."))
    path = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
      for each in _imported(node):
        if each not in found and _is_module(each):
          found.add(each)
          left.append(each)
  return found


def _imported(node: ast.AST) -> list[str]:
  names = []
  if isinstance(node, ast.Import):
    names = [alias.name for alias in node.names]
  elif isinstance(node, ast.ImportFrom):
    names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
  return [name for name in names if name.startswith("experiments.")]


def _is_module(name: str) -> bool:
  path = ROOT.joinpath(*name.split("."))
  return path.is_dir() or path.with_suffix(".py").exists()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_loads_its_own_parts_only(program):
  reached = {name.split(".")[1] for name in modules(f"experiments.{program}")}
  assert reached <= LOADS.get(program, set())


def test_imports_are_followed():
  assert {"experiments.benchmarks.contest", "experiments.benchmarks.peers"} <= modules(
      "experiments.bench")
  assert "experiments.papers.claim" in modules("experiments.reproduce")
