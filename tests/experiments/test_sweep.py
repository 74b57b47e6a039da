"""`python -m experiments.sweep` with a tiny model: killed, resumed, shared, and given bad input."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.launch import forked

TINY = pathlib.Path(__file__).parents[1] / "loading" / "goldens" / "llama"
COMMON = [
    f"--config.target={TINY}", "--config.max_new_tokens=8", "--config.gamma=2",
    "--noapply_chat_template", "--json"]
LONG_RUN = "--seeds=" + ",".join(map(str, range(12)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  folder = tmp_path_factory.mktemp("sweeps")
  good = '{"prompt": "the cat the cat the"}\n'
  (folder / "good.jsonl").write_text(good + '{"prompt": "a hot dog"}\n')
  # The second turn fits no context, which only the answer before it brings to light.
  (folder / "late.jsonl").write_text(json.dumps({"turns": ["ab", "ab " * 200]}) + "\n")
  (folder / "config.py").write_text(f"""
from ml_collections import config_dict
def get_config():
  return config_dict.ConfigDict(dict(
      target={str(TINY)!r}, drafter="ngram", rule="block", gamma=2, temperature=0.5,
      max_new_tokens=8,
      sweep=dict(
          prompts=[{str(folder / "good.jsonl")!r}], temperature=(0.0, 1.0),
          zip=[dict(seed=(3, 4), top_k=(0, 5))])))
""")
  return folder


@pytest.fixture(autouse=True, scope="module")
def shared_programs():
  """The processes of this file compile the same programs; small ones are kept too."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    yield


def sweep(*command_lines):
  return forked.run([["experiments.sweep", *line] for line in command_lines])


def start(*arguments) -> subprocess.Popen:
  return subprocess.Popen(
      [sys.executable, "-m", "experiments.sweep", *COMMON, *arguments], cwd=forked.ROOT, text=True,
      stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "JAX_PLATFORMS": "cpu"})


def result(outcome) -> dict:
  code, out, err = outcome
  assert code == 0, err
  return json.loads(out.splitlines()[-1])


def lines(folder, name="results*.jsonl") -> list[dict]:
  return [json.loads(text) for path in sorted(folder.glob(name))
          for text in path.read_text().splitlines() if text.endswith("}")]


def test_a_killed_sweep_goes_on_where_it_was(files):
  out = files / "killed"
  arguments = [f"--prompts={files / 'good.jsonl'}", LONG_RUN, f"--out={out}"]
  path = out / "results.jsonl"
  with start(*arguments) as process:
    while not (path.exists() and path.read_bytes().count(b"\n")):
      assert process.poll() is None, process.stderr.read()
      time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
  assert process.returncode == -signal.SIGKILL and list((out / "locks").iterdir())
  with path.open("ab") as file:
    file.write(b'{"id": "torn')
  before = path.read_bytes()
  (again,) = sweep([*COMMON, *arguments])
  found = result(again)
  kept = before.count(b"\n")
  assert 1 <= kept < 12 and found["skipped"] == kept and found["done"] == 12
  assert path.read_bytes().startswith(before + b"\n")
  assert f"results.jsonl, line {kept + 1} is not a result and is left out" in again[2]
  ids = [line["id"] for line in lines(out)]
  assert len(ids) == len(set(ids)) == 12


def test_two_workers_give_every_cell_once(files):
  out = files / "shared"
  grid = [f"--prompts={files / 'good.jsonl'}", LONG_RUN, f"--out={out}", "--num_workers=2"]
  workers = [start(*grid, f"--worker_index={index}") for index in range(2)]
  for worker in workers:
    _, err = worker.communicate(timeout=200)
    assert worker.returncode == 0, err
  ids = [line["id"] for line in lines(out)]
  assert len(ids) == len(set(ids)) == 12 and list((out / "locks").iterdir()) == []
  assert {path.name for path in out.glob("*.jsonl")} == {"results-0.jsonl", "results-1.jsonl"}


def test_what_a_sweep_leaves(files):
  out, mixed = files / "out", files / "mixed"
  grid = [
      f"--config={files / 'config.py'}", "--rule=token,typical:0.09,0.3", "--noapply_chat_template",
      "--json", f"--out={out}"]
  sets = f"--prompts={files / 'good.jsonl'},{files / 'late.jsonl'}"
  made, again, failed, other, drifted = sweep(
      grid, grid, [*COMMON, sets, f"--out={mixed}"], [*grid, "--config.max_new_tokens=7"],
      [*grid, "--min_p=0,0.1"])
  found = result(made)
  assert "| rule " in made[1] and "tau:" in made[1]
  assert "| typical:0.09,0.3 |         1.0 " in made[1]
  assert (found["done"], found["failed"], found["skipped"], found["elsewhere"]) == (8, 0, 0, 0)
  assert found["folder"] == str(out) and len(found["rows"]) == len(lines(out)) == 8
  assert {"id", "cell", "error", "tau", "alpha", "speedup"} <= set(found["rows"][0])
  assert [row["identical_to_baseline"] for row in found["rows"]] == [True, True, None, None] * 2
  cells = [row["cell"] for row in found["rows"]]
  assert {(cell["seed"], cell["top_k"]) for cell in cells} == {(3, 0), (4, 5)}
  assert all("text" not in line["result"] and line["result"]["tokens"] for line in lines(out))
  assert json.loads((out / "sweep.json").read_text())["axes"]["temperature"] == [0.0, 1.0]
  assert result(again)["skipped"] == 8 and len(lines(out)) == 8

  code, text, err = failed
  assert code == 1 and "turn 2 makes a prompt of" in err and "| failed: " in text
  assert json.loads(text.splitlines()[-1])["failed"] == 1
  assert [line["error"] is None for line in lines(mixed)] == [True, False]

  for (code, text, err), complaint in (
      (other, "config.max_new_tokens: 8 there, 7 now"), (drifted, "axes: ")):
    assert code == 2 and complaint in err and text == ""


def test_bad_input_is_answered_in_one_paragraph(files):
  good, out = f"--prompts={files / 'good.jsonl'}", f"--out={files / 'bad'}"
  cases = [
      ([good], "--out=DIR is needed"),
      ([out], "a sweep needs prompts"),
      ([good, out, "--gamma="], "'gamma' has an empty value"),
      ([good, out, "--gamma=1,1"], "holds a cell twice"),
      ([good, out, "--gama=1"], "Unknown command line flag 'gama'. Did you mean: gamma"),
      ([good, out, "--temperature=0,-1"], "config.temperature must be 0 or more, got -1.0"),
      ([good, out, "--gamma=7,8", "--config.strict"], "at most 7; got 8"),
      ([good, out, "--rule=token,tokn"], "did you mean 'token'"),
      ([good, out, "--seeds=0,1", "--seed=3"], "give one of them"),
      ([good, out, "--prompts=none.jsonl"], "none.jsonl"),
      ([good, out, "--stop="], "a stop string must not be empty"),
      ([good, out, "--worker_index=2", "--num_workers=2"], "counted from 0 to 1"),
      ([good, out, "--num_workers=0"], "num_workers"),
      ([good, out, "--drafter=ngram,layer_skip:9"], "the target has layers 1 to 2"),
      ([good, out, "--target=/none.gguf"], "/none.gguf: no such file"),
      ([f"--config={files / 'config.py'}", out, "--seeds=1"], "moves together with top_k"),
      ([f"--prompts={files / 'late.jsonl'}", out, "--target=" + str(TINY) + ",/none"], "/none"),
  ]
  for (arguments, complaint), (code, text, err) in zip(
      cases, sweep(*[[*arguments, *COMMON] for arguments, _ in cases])):
    last = err.strip().splitlines()[-1]
    assert complaint in last and last.startswith("sweep: error: "), (arguments, err)
    assert code == 2 and "Traceback" not in err and text == "", (arguments, code, err)
  assert not list((files / "bad").glob("*.json*"))


def test_help_tells_how_to_write_values():
  (code, out, err), = sweep(["--help"])
  for word in ("typical:0.09,0.3", "--gamma", "--seeds", "--prompts", "--worker_index", "zip"):
    assert word in out + err, word


def test_the_slurm_script_numbers_the_workers(tmp_path):
  python = tmp_path / ".venv" / "bin" / "python"
  python.parent.mkdir(parents=True)
  python.write_text('#!/bin/sh\necho "$@"\n')
  python.chmod(0o755)
  done = subprocess.run(
      ["bash", str(forked.ROOT / "scripts" / "sweep_slurm.sh"), "--out=a b"], text=True, check=True,
      capture_output=True, env={
          **os.environ, "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_ARRAY_TASK_COUNT": "4",
          "SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "5"})
  assert done.stdout == "-m experiments.sweep --out=a b --num_workers=4 --worker_index=2\n"
