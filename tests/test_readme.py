"""The README tells the truth: its commands parse, its tables are those of the code."""

import dataclasses
import pathlib
import re
import shlex

import pytest

from specjax.launch import registry
from specjax.launch.config import DecodeConfig
from tests.launch import forked

ROOT = pathlib.Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[list[str]]:
  """[module, argument, ...] of every `python -m experiments.X` in the README."""
  joined = TEXT.replace("\\\n", " ")
  lines = re.findall(r"python -m (experiments\.[^`#\n]+)", joined)
  return [shlex.split(line) for line in lines]


def rows(heading: str) -> list[list[str]]:
  """The cells of the first table after a heading."""
  table = re.search(r"(?:^\|.*\n)+", TEXT[TEXT.index(heading):], re.M).group()
  return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_every_command_parses():
  assert len(commands()) >= 5
  for command, (code, out, err) in zip(
      commands(), forked.run([[*command, "--only_check_args"] for command in commands()])):
    assert code == 0, (command, err)


def test_the_table_of_keys_is_complete():
  keys = [key for row in rows("**Configuration.**") for key in re.findall(r"`(\w+)`", row[0])]
  assert sorted(keys) == sorted(field.name for field in dataclasses.fields(DecodeConfig))


def test_the_table_of_rules_is_that_of_the_code():
  found = {re.match(r"`(\w+)", row[0]).group(1): row for row in rows("## Rules")}
  assert set(found) == set(registry.RULES)
  for name, (_, _, lossless, trees) in found.items():
    rule = registry.rule("lenient:0.8" if name == "lenient" else name)
    assert (lossless == "yes") is rule.lossless, name
    assert (trees == "yes") is rule.trees, name


@pytest.mark.parametrize("path", re.findall(r"`((?:specjax|tests|scripts|configs)/[\w/.]+)`", TEXT))
def test_named_files_exist(path):
  assert (ROOT / path).exists() or "my_rule" in path  # the reader's own


def test_the_scripts_are_there():
  for script in re.findall(r"\./(scripts/\w+\.sh)", TEXT):
    assert (ROOT / script).is_file()
