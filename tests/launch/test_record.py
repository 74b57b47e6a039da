"""The manifest is plain, complete, and honest about what it does not know."""

import pathlib
import subprocess

import pytest

from specjax.launch import record, strict_json
from specjax.launch.config import DecodeConfig


def test_the_manifest_is_plain_and_complete():
  made = record.manifest(7, DecodeConfig(gamma=2), {"target": "ab"})
  assert strict_json.plain(made) == made
  assert made["seed"] == 7 and made["config"]["gamma"] == 2 and made["models"] == {"target": "ab"}
  assert made["prng"]["implementation"] == "threefry2x32"
  assert {"jax", "jaxlib", "flax", "numpy", "python"} <= set(made["versions"])
  assert made["device"]["platform"] == "cpu"
  for key in ("command", "config_sha256", "git", "matmul_precision", "xla_flags", "enable_x64"):
    assert key in made


def test_the_hash_is_that_of_the_values():
  one = record.digest({"a": 1, "b": [1.5, None]})
  assert one == record.digest({"b": (1.5, float("nan")), "a": 1}) and len(one) == 64
  assert one != record.digest({"a": 2, "b": [1.5, None]})
  same = record.manifest(0, DecodeConfig())["config_sha256"]
  assert same == record.digest(strict_json.plain(DecodeConfig()))
  assert same != record.manifest(0, DecodeConfig(gamma=5))["config_sha256"]


def git(folder: pathlib.Path, *arguments: str):
  who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
  subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_the_commit_is_that_of_our_own_checkout(tmp_path):
  file = tmp_path / "site-packages" / "record.py"
  file.parent.mkdir()
  file.write_text("1")
  assert record._git(file) is None
  git(tmp_path, "init")
  (tmp_path / "else.txt").write_text("somebody else's repository")
  git(tmp_path, "add", "else.txt")
  git(tmp_path, "commit", "-m", "one")
  assert record._git(file) is None

  git(tmp_path, "add", ".")
  git(tmp_path, "commit", "-m", "two")
  clean = record._git(file)
  assert len(clean["commit"]) == 40 and clean["dirty"] is False
  file.write_text("2")
  assert record._git(file) == dict(clean, dirty=True)


def test_the_manifest_of_a_checkout_names_its_commit():
  """Wherever the file of the manifest is moved to."""
  root = pathlib.Path(__file__).resolve().parents[2]
  if not (root / ".git").exists():
    pytest.skip("not a git checkout")
  assert len(record.manifest(0)["git"]["commit"]) == 40


def test_no_git_is_no_error(tmp_path, monkeypatch):
  monkeypatch.setenv("PATH", str(tmp_path))
  assert record.manifest(0)["git"] is None
