"""The README tells the truth: its commands parse, its tables are those of the code."""

import dataclasses
import pathlib
import re
import shlex

import pytest

from specjax import decode, loading, logits
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


# What makes a command short; each takes the place of the same flags in the README.
TINY = ["--config.target=tests/loading/goldens/llama", "--config.max_new_tokens=4"]
SMALL = {
    "experiments.costs": [*TINY, "--drafter=ngram"],
    "experiments.decode": [*TINY, "--config.drafter=ngram"],
    "experiments.sweep": [*TINY, "--gamma=1,2", "--temperature=0,1"],
    "experiments.bench": ["--section=logits", "--repeats=1"],
    "experiments.certify": ["--rule=token"],
    "experiments.reproduce": ["--paper=leviathan2023"],
    "experiments.invariance": ["--model=tiny"],
}


def in_small(command: list[str], folder: pathlib.Path) -> list[str]:
  """The command with its placeholders filled in and everything long about it made short."""
  module, *arguments = command
  given = set(map(_flag, arguments))
  short = list(SMALL.get(module, []))
  if "--replay" in given:
    short = []  # the record says it all
  if module == "experiments.sweep" or "--prompts" in given:
    short.append(f"--prompts={folder / 'FILE.jsonl'}")
  replaced = {_flag(a) for a in short}
  kept = [a.replace("DIR", str(folder)).replace("runs/", f"{folder}/")
          for a in arguments if _flag(a) not in replaced]
  return [module, *kept, *short]


def _flag(argument: str) -> str:
  return argument.split("=")[0]


def test_every_command_runs(tmp_path):
  (tmp_path / "FILE.jsonl").write_text('{"prompt": "the cat the cat the"}\n')
  assert {command[0] for command in commands()} == {
      f"experiments.{path.stem}" for path in (ROOT / "experiments").glob("[a-z]*.py")
      if path.stem != "device_check"}  # which scripts/gpu_check.sh runs
  runs_already = lambda command: any(  # in test_configs
      a.startswith("--config=configs/sweeps/") for a in command)
  short = [in_small(command, tmp_path) for command in commands() if not runs_already(command)]
  for command, (code, out, err) in zip(short, forked.run(short)):
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


def test_the_first_lines_of_python_run(default_model, capsys, monkeypatch):
  """Eight lines as they stand, and their answers are those of plain decoding."""
  snippet = re.search(r"^```python\n(.*?)^```", TEXT, re.M | re.S).group(1)
  assert len([line for line in snippet.splitlines() if line.strip()]) <= 8
  monkeypatch.setattr(loading, "default_model", lambda: default_model)  # it is loaded already
  names = {}
  exec(snippet, names)
  answers, prompts = names["answers"], names["prompts"]
  assert f"tau = {answers.tau:.2f}" in capsys.readouterr().out
  assert len(set(map(len, prompts))) == len(prompts) == len(answers.texts) and answers.tau > 1.1
  plain = decode.autoregressive(default_model.target(), logits.temperature(0))
  assert answers.texts == decode.answer(plain, default_model, prompts, max_new_tokens=48).texts
