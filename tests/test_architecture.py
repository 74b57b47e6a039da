"""The shape of the code base: who imports whom, how long things are, what is not done at all.

Each test lists every offence with its place, so a failure says what to mend.
"""

import ast
import functools
import pathlib
import re
import tokenize

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
# A package imports only from the groups before its own, and from itself.
ORDER = (
    ("types",),
    ("keys",),
    ("logits",),
    ("trees",),
    ("models", "verify", "theory"),
    ("drafters", "exact", "stats"),
    ("loading",),  # a published drafter becomes one of drafters/
    ("decode",),
    ("train", "launch"),
    ("measure", "report"),
    ("sweep",),
    ("experiments",),
)
FRAME = ("launch", "experiments")  # the edge: flags and environment variables are read here
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_LINE = 350, 80, 100
RANK = {name: rank for rank, group in enumerate(ORDER) for name in group}


@functools.cache
def parse(path: pathlib.Path) -> ast.Module:
  return ast.parse(path.read_text(encoding="utf-8"), str(path))


def library() -> list[pathlib.Path]:
  return sorted(p for top in ("specjax", "experiments") for p in (ROOT / top).rglob("*.py"))


def everything() -> list[pathlib.Path]:
  rest = [p for top in ("configs", "tests", "scripts") for p in (ROOT / top).rglob("*.py")]
  return sorted(library() + rest + [ROOT / "setup.py"])


def unit(path: pathlib.Path) -> str:
  """The part of the project that a file belongs to: `logits`, `types`, ..., `experiments`."""
  parts = path.relative_to(ROOT).with_suffix("").parts
  return parts[0] if parts[0] == "experiments" else parts[1]


def imported(path: pathlib.Path) -> list[tuple[int, str]]:
  """(line, dotted name) of everything that a file imports, `from a import b` as `a.b`."""
  found = []
  for node in ast.walk(parse(path)):
    if isinstance(node, ast.Import):
      found += [(node.lineno, alias.name) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{place(path, node.lineno)}: a relative import; spell the name out"
      found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
  return found


def units_of(name: str) -> str | None:
  """The part of the project that an imported name belongs to, None for other people's packages."""
  parts = name.split(".")
  if parts[0] == "experiments":
    return "experiments"
  return parts[1] if parts[0] == "specjax" and len(parts) > 1 else None


def place(path: pathlib.Path, line: int) -> str:
  return f"{path.relative_to(ROOT)}:{line}"


def report(offences: list[str]) -> None:
  assert not offences, "\n" + "\n".join(offences)


def test_imports_go_leftward_only():
  offences = []
  for path in library():
    if path == ROOT / "specjax" / "__init__.py":
      continue
    own = unit(path)
    for line, name in imported(path):
      other = units_of(name)
      if other is not None and other != own and RANK[other] >= RANK[own]:
        offences.append(f"{place(path, line)}: {own} imports {name}, which is not to its left")
  report(offences)


def test_every_part_has_its_rank():
  folders = {unit(path) for path in library() if path.parent != ROOT / "specjax"}
  assert folders <= set(RANK), f"not in ORDER: {sorted(folders - set(RANK))}"


def test_decode_imports_no_concrete_method():
  allowed = {"specjax.verify.rule.Rule"}
  offences = []
  for path in library():
    if unit(path) == "decode":
      for line, name in imported(path):
        if units_of(name) in ("drafters", "models", "verify") and name not in allowed:
          offences.append(f"{place(path, line)}: decode takes methods as arguments, not {name}")
  report(offences)


def test_verify_sees_mathematics_only():
  offences = [
      f"{place(path, line)}: a rule needs nothing from {name}"
      for path in library() if unit(path) == "verify" for line, name in imported(path)
      if units_of(name) not in (None, "types", "keys", "logits", "trees", "verify")]
  report(offences)


def test_flax_lives_in_models_only():
  offences = [
      f"{place(path, line)}: {name} outside of models/"
      for path in library() if unit(path) != "models"
      for line, name in imported(path) if name.split(".")[0] == "flax"]
  report(offences)


def test_flags_are_defined_at_the_edge():
  offences = [
      f"{place(path, line)}: {name} below launch/"
      for path in library() if unit(path) not in FRAME
      for line, name in imported(path)
      if name.split(".")[0] == "ml_collections" or name.startswith("absl.")
      and not name.startswith("absl.logging")]
  report(offences)


def test_environment_variables_are_read_at_the_edge():
  exempt = ROOT / "specjax" / "loading" / "default.py"  # the folder of downloads
  offences = []
  for path in library():
    if unit(path) in FRAME or path == exempt:
      continue
    for node in ast.walk(parse(path)):
      if isinstance(node, (ast.Attribute, ast.Name)) and ast.unparse(node) in (
          "os.environ", "os.getenv", "environ", "getenv"):
        offences.append(f"{place(path, node.lineno)}: {ast.unparse(node)} below launch/")
  report(offences)


def test_files_are_short():
  offences = []
  for path in everything():
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > LONGEST_FILE:
      offences.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {LONGEST_FILE}")
  report(offences)


def test_functions_are_short():
  offences = []
  for path in everything():
    for node in ast.walk(parse(path)):
      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        lines = node.end_lineno - node.lineno + 1
        if lines > LONGEST_FUNCTION:
          offences.append(
              f"{place(path, node.lineno)}: {node.name} has {lines} lines, "
              f"at most {LONGEST_FUNCTION}")
  report(offences)


def test_no_line_is_longer_than_100_characters():
  """But for the command of a configuration, which is one line to be copied."""
  offences = []
  for path in everything():
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
      is_command = (path.is_relative_to(ROOT / "configs")
                    and line.startswith("    python -m experiments."))
      if len(line) > LONGEST_LINE and not is_command:
        offences.append(f"{place(path, number)}: {len(line)} characters, at most {LONGEST_LINE}")
  report(offences)


def test_nothing_is_left_for_later():
  word = re.compile("TO" + "DO|FIX" + "ME|X" + "XX")
  offences = []
  for path in everything():
    with tokenize.open(path) as file:
      for token in tokenize.generate_tokens(file.readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and word.search(token.string):
          offences.append(f"{place(path, token.start[0])}: {token.string.strip()[:60]}")
  report(offences)


def dropped_updates(tree: ast.Module) -> list[int]:
  """Lines of expression statements like `x.at[i].set(y)`, whose result goes nowhere."""
  lines = []
  for node in ast.walk(tree):
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
      function = node.value.func
      if (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Subscript)
          and isinstance(function.value.value, ast.Attribute)
          and function.value.value.attr == "at"):
        lines.append(node.lineno)
  return lines


def test_no_update_is_dropped():
  assert dropped_updates(ast.parse("x.at[0].set(1)\ny = x.at[0].set(1)")) == [1]
  report([
      f"{place(path, line)}: the updated array is thrown away"
      for path in everything() for line in dropped_updates(parse(path))])


def test_every_module_says_what_it_is():
  report([f"{path.relative_to(ROOT)}: no docstring"
          for path in library() if parse(path).body and not ast.get_docstring(parse(path))])


@pytest.mark.parametrize("name", ["setup.cfg", "pyproject.toml"])
def test_metadata_has_one_home(name):
  assert not (ROOT / name).exists(), f"{name} beside setup.py, which holds all metadata"
