"""Every configuration keeps its promise: it says its command, and the command runs in small."""

import importlib.util
import json
import pathlib
import re
import shlex

import pytest

from tests.launch import forked

ROOT = pathlib.Path(__file__).resolve().parents[1]
TINY = ROOT / "tests" / "loading" / "goldens" / "llama"
PATHS = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "configs").rglob("*.py") if path.name != "__init__.py")


def load(path):
  spec = importlib.util.spec_from_file_location("config_under_test", ROOT / path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def command(path) -> list[str]:
  """[module, argument, ...] as the docstring says it."""
  line = re.search(r"^    python -m (.+)$", load(path).__doc__, re.M).group(1)
  return shlex.split(line)


def in_small(path, folder) -> list[str]:
  """Flags behind the command that make it short: tiny models, few tokens, two values an axis."""
  config = load(path).get_config()
  small = ["--config.max_new_tokens=4", f"--out={folder / path.stem}"]
  if config.target.startswith("table:"):
    small += ["--noapply_chat_template"]
  else:
    drafter = {"layer_skip": "layer_skip:1", "ngram": "ngram"}.get(
        config.drafter.split(":")[0], str(TINY))
    small += [f"--config.target={TINY}", f"--config.drafter={drafter}"]
  axes = config.get("sweep", {})
  prompts = f"--prompts={folder / 'prompts.jsonl'}"
  small += [f"--{axis}={','.join(map(str, axes[axis][:2]))}" for axis in axes if axis != "prompts"]
  return small + ([prompts] if "experiments.bench" not in command(path) else [prompts, *BENCH])


BENCH = ["--section=logits", "--repeats=1"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
  folder = tmp_path_factory.mktemp("configs")
  (folder / "prompts.jsonl").write_text('{"prompt": "the cat the cat the"}\n')
  ran = forked.run([[*command(path), *in_small(path, folder), "--json"] for path in PATHS])
  return dict(zip(PATHS, ran))


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_the_docstring_says_the_command_and_what_to_expect(path):
  assert f"--config={path}" in command(path)
  text = load(path).__doc__
  assert re.search(r"(seconds?|minutes?|time)\b", text) and "MEASURE" not in text


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_the_command_runs(outcomes, path):
  code, out, err = outcomes[path]
  assert code == 0, err
  result = json.loads(out.splitlines()[-1])
  assert result.get("failed", 0) == 0
  if "experiments.sweep" in command(path) and load(path).get_config().target.startswith("table:"):
    shown = out.rpartition("\n{")[0]
    assert "microseconds" in shown and "tau" in shown and "speed-up" not in shown
