"""The READMEs tell the truth: commands and snippets run, tables and names are those of the code."""

import dataclasses
import importlib
import pathlib
import re
import shlex
import sys
import textwrap

import pytest

import specjax
from specjax import decode, loading, logits
from specjax.launch import registry
from specjax.launch.config import DecodeConfig
from specjax.verify import template
from tests.launch import forked

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILES = sorted([ROOT / "README.md", ROOT / "experiments" / "README.md",
                *ROOT.glob("specjax/*/README.md")])
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
OWN = {  # what the reader writes, by module: the file that he is told to copy, and its function
    "my_drafter": ("specjax/drafters/template.py", "template"),
    "my_rule": ("specjax/verify/template.py", "template"),
}


def commands() -> list[list[str]]:
  """[module, argument, ...] of every `python -m experiments.X` in the READMEs."""
  lines = [
      line for text in TEXTS.values()
      for line in re.findall(r"python -m (experiments\.[^`#\n]+)", text.replace("\\\n", " "))]
  return [shlex.split(line) for line in lines]


def rows(file: str, heading: str) -> list[list[str]]:
  """The cells of the first table after a heading."""
  text = TEXTS[file]
  table = re.search(r"(?:^\|.*\n)+", text[text.index(heading):], re.M).group()
  return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def snippets(file: str) -> list[str]:
  """The blocks of Python in a README."""
  found = re.findall(r"^( *)```python\n(.*?)^\1```", TEXTS[file], re.M | re.S)
  return [textwrap.dedent(code) for _, code in found]


def write_own(folder: pathlib.Path) -> None:
  """What the reader has after copying the templates and naming their functions."""
  for name, (file, function) in OWN.items():
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {function}(" in text
    (folder / f"{name}.py").write_text(text.replace(f"def {function}(", f"def {name}("))


# What makes a command short; each takes the place of the same flags in the README.
TINY = ["--config.target=tests/loading/goldens/llama", "--config.max_new_tokens=4"]
SMALL = {
    "experiments.costs": [*TINY, "--drafter=ngram"],
    "experiments.decode": TINY,
    "experiments.sweep": [*TINY, "--gamma=1,2", "--temperature=0,1"],
    "experiments.bench": ["--section=logits", "--repeats=1"],
    "experiments.reproduce": ["--paper=leviathan2023"],
    "experiments.invariance": ["--model=tiny"],
}


def in_small(command: list[str], folder: pathlib.Path) -> list[str]:
  """The command with its placeholders filled in and everything long about it made short."""
  module, *arguments = command
  given = set(map(_flag, arguments))
  short = list(SMALL.get(module, []))
  if module == "experiments.certify" and not given:
    short.append("--rule=token")
  if module == "experiments.sweep" and given & {"--rule", "--drafter"}:
    short = [*TINY, "--gamma=2", "--temperature=1"]  # one of the axes is enough
  if "--replay" in given or "--config=configs/table.py" in arguments:
    short = []  # the record says it all; a table is short
  elif module == "experiments.decode" and "--config.drafter" not in given:
    short.append("--config.drafter=ngram")
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
  write_own(tmp_path)
  assert {command[0] for command in commands()} == {
      f"experiments.{path.stem}" for path in (ROOT / "experiments").glob("[a-z]*.py")
      if path.stem != "device_check"}  # which scripts/gpu_check.sh runs
  runs_already = lambda command: any(  # in test_configs
      a.startswith("--config=configs/sweeps/") for a in command)
  short = [in_small(command, tmp_path) for command in commands() if not runs_already(command)]
  short = [list(command) for command in dict.fromkeys(map(tuple, short))]
  results = forked.run(short, PYTHONPATH=f"{ROOT}:{tmp_path}")
  for command, (code, out, err) in zip(short, results):
    assert code == 0, (command, err)


@pytest.mark.parametrize("file, index", [
    (file, index) for file in TEXTS for index, _ in enumerate(snippets(file))
    if file != "README.md"])  # the one of which has a test of its own
def test_every_snippet_runs(file, index, default_model, monkeypatch, tmp_path, capsys):
  """As it stands; one with a line of three dots is a sketch and need only be Python."""
  code = compile(snippets(file)[index], f"{file}, block {index}", "exec")
  if re.search(r"^ *\.\.\.$", snippets(file)[index], re.M):
    return
  write_own(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  for name in OWN:
    monkeypatch.delitem(sys.modules, name, raising=False)
  monkeypatch.setattr(loading, "default_model", lambda: default_model)  # loaded only once
  exec(code, {})
  capsys.readouterr()
  for name in OWN:
    sys.modules.pop(name, None)


def test_the_first_lines_of_python(default_model, capsys, monkeypatch):
  """Eight of them, and their answers are those of plain decoding."""
  snippet = snippets("README.md")[0]
  assert len([line for line in snippet.splitlines() if line.strip()]) <= 8
  monkeypatch.setattr(loading, "default_model", lambda: default_model)
  names = {}
  exec(snippet, names)
  answers, prompts = names["answers"], names["prompts"]
  assert f"tau = {answers.tau:.2f}" in capsys.readouterr().out
  assert len(set(map(len, prompts))) == len(prompts) == len(answers.texts) and answers.tau > 1.1
  said = re.search(r"takes (\d+) passes for (\d+) tokens", TEXTS["README.md"]).groups()
  assert said == (str(answers.counts.rounds[0]), str(answers.counts.emitted[0]))
  plain = decode.autoregressive(default_model.target(), logits.temperature(0))
  assert answers.texts == decode.answer(plain, default_model, prompts, max_new_tokens=48).texts


def test_the_numbers_of_the_template_are_those_of_the_readme():
  block = next(code for code in snippets("specjax/verify/README.md") if "certify" in code)
  certificate = specjax.exact.certify(template.template())
  assert certificate.lossless and certificate.max_tv < 1e-15
  assert f"# {certificate.block_efficiency:.2f}\n" in block


def test_the_table_of_keys_is_complete():
  table = rows("experiments/README.md", "## Configuration")
  keys = [key for row in table for key in re.findall(r"`(\w+)`", row[0])]
  assert sorted(keys) == sorted(field.name for field in dataclasses.fields(DecodeConfig))


def test_the_table_of_programs_is_complete():
  table = rows("experiments/README.md", "# Experiments")
  assert sorted(row[0].strip("`") for row in table) == sorted({c[0] for c in commands()})


def test_the_table_of_rules_is_that_of_the_code():
  table = rows("specjax/verify/README.md", "# Verification rules")
  found = {re.match(r"`(\w+)", row[0]).group(1): row for row in table}
  assert set(found) == set(registry.RULES)
  for name, (_, _, lossless, trees) in found.items():
    rule = registry.rule("lenient:0.8" if name == "lenient" else name)
    assert (lossless == "yes") is rule.lossless, name
    assert (trees == "yes") is rule.trees, name


def test_the_table_of_drafters_is_that_of_the_code():
  table = rows("specjax/drafters/README.md", "# Drafters")
  named = {name for row in table for name in re.findall(r"`(\w+)", row[0])}
  assert named >= set(registry.DRAFTERS)
  assert set(specjax.drafters.__all__) <= set(
      re.findall(r"`drafters\.(\w+)", TEXTS["specjax/drafters/README.md"]))


@pytest.mark.parametrize("file", TEXTS)
def test_named_files_and_links_exist(file):
  text = TEXTS[file]
  named = re.findall(r"`\.?/?((?:specjax|tests|scripts|configs|experiments)/[\w/.]+)`", text)
  missing = [path for path in named if not (ROOT / path).exists()]
  links = re.findall(r"\]\(([^)#:]+)\)", text)
  missing += [link for link in links if not (ROOT / file).parent.joinpath(link).exists()]
  assert not missing
  for script in re.findall(r"\./(scripts/\w+\.sh)", text):
    assert (ROOT / script).is_file()


@pytest.mark.parametrize("file", TEXTS)
def test_named_functions_exist(file):
  """Every `decode.x` and `specjax.decode.x` in backquotes is a name of that part."""
  parts = "|".join(name for name in specjax.__all__ if not name.startswith("__"))
  for part, name in re.findall(rf"`(?:specjax\.)?({parts})\.(\w+)", TEXTS[file]):
    home = importlib.import_module(f"specjax.{part}")
    assert hasattr(home, name) or name in ("py", "json", "md"), f"{part}.{name}"


def test_the_first_readme_is_short_and_leads_to_the_others():
  assert len(TEXTS["README.md"].splitlines()) <= 200
  for file in TEXTS:
    assert file == "README.md" or f"({file})" in TEXTS["README.md"]


def test_they_come_with_the_package():
  assert '"": ["README.md"]' in (ROOT / "setup.py").read_text(encoding="utf-8")
