"""`import specjax`: what it offers, and that it costs nothing until it is used."""

import importlib
import pathlib
import subprocess
import sys

import pytest

import specjax

ROOT = pathlib.Path(__file__).resolve().parents[1]
PARTS = [name for name in specjax.__all__ if not name.startswith("__")]


def python(code: str) -> str:
  """What a fresh process prints."""
  done = subprocess.run(
      [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
  assert done.returncode == 0, done.stderr
  return done.stdout


def test_importing_it_imports_nothing_else():
  before, after = python(
      "import importlib, typing, sys; before = set(sys.modules); import specjax; "
      "print(len(before)); print(sorted(set(sys.modules) - before))").splitlines()
  assert int(before) and after == "['specjax']"


def test_importing_it_is_fast():
  """Best of five, since other processes may hold the machine. JAX alone takes over a second."""
  code = (
      "import time; begin = time.perf_counter(); import specjax; "
      "print(time.perf_counter() - begin)")
  assert min(float(python(code)) for _ in range(5)) < 0.05


def test_parts_are_imported_by_use():
  code = (
      "import specjax, sys; specjax.theory; print('specjax.theory' in sys.modules, "
      "'specjax.decode' in sys.modules); print(specjax.verify.token().lossless)")
  assert python(code).split() == ["True", "False", "True"]


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_there_and_says_what_it_offers(name):
  part = getattr(specjax, name)
  assert part is importlib.import_module(f"specjax.{name}")
  assert part.__doc__
  if hasattr(part, "__path__"):
    assert sorted(part.__all__) == list(dict.fromkeys(sorted(part.__all__)))
    assert all(hasattr(part, offered) for offered in part.__all__)
    loose = {
        key for key, value in vars(part).items()
        if not key.startswith("_") and getattr(value, "__module__", "").startswith("specjax.")}
    assert loose <= set(part.__all__), "imported into the package but not in its __all__"


def test_tab_completion_shows_the_parts():
  assert dir(specjax) == sorted(specjax.__all__)
  assert {"decode", "drafters", "exact", "loading", "logits", "models", "theory", "train",
          "verify", "__version__"} <= set(dir(specjax))


@pytest.mark.parametrize("wrong, hint", [
    ("decod", "did you mean 'decode'?"),
    ("draftres", "did you mean 'drafters'?"),
    ("xyzzy", "its parts are decode, drafters, exact"),
])
def test_a_wrong_name_is_told_what_was_meant(wrong, hint):
  with pytest.raises(AttributeError) as caught:
    getattr(specjax, wrong)
  assert f"module 'specjax' has no attribute {wrong!r}; {hint}" in str(caught.value)
  assert not hasattr(specjax, wrong)


def test_the_version_has_one_home():
  done = subprocess.run(
      [sys.executable, "setup.py", "--version"], capture_output=True, text=True, cwd=ROOT,
      check=True)
  assert done.stdout.split()[-1] == specjax.__version__
  assert f'"{specjax.__version__}"' not in (ROOT / "setup.py").read_text(encoding="utf-8")


def test_types_are_marked():
  assert (ROOT / "specjax" / "py.typed").is_file()
  assert '"py.typed"' in (ROOT / "setup.py").read_text(encoding="utf-8")
