"""The frame of experiments: exit codes, streams, files."""

import io
import json
import os
import subprocess
import sys

import pytest
from absl import flags
from absl.testing import flagsaver

from specjax.launch import app
from tests.launch import forked

CASES = {
    "result": ["--json"],
    "silent": [],
    "failure": ["--what=failure", "--json"],
    "file": ["--out=@/a/b"],
    "mistake": ["--what=mistake", "--json"],
    "bug": ["--what=bug"],
    "bug of ours": ["--what=bug of ours"],
    "bug of jax": ["--what=bug of jax"],
    "interrupt": ["--what=interrupt"],
    "no configuration": ["--config.gamma=1"],
    "no place": ["--out=/proc/self"],
    "a byte": ["--out=@/\udcff", "--json"],
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
  folder = tmp_path_factory.mktemp("out")
  lines = [
      ["tests.launch.toy_experiment", *(a.replace("@", str(folder)) for a in arguments)]
      for arguments in CASES.values()]
  return dict(zip(CASES, forked.run(lines))) | {"folder": folder}


@pytest.mark.parametrize("case, code", [("result", 0), ("failure", 1)])
def test_the_last_line_is_the_result(outcomes, case, code):
  found, out, err = outcomes[case]
  assert found == code and err == ""
  assert out.splitlines()[0] == "words for people" and len(out.splitlines()) == 2
  assert json.loads(out.splitlines()[-1]) == {"number": None, "text": "é\n"}


def test_without_json_only_people_are_spoken_to(outcomes):
  assert outcomes["silent"][:2] == (0, "words for people\n")


def test_results_go_into_a_folder_that_is_made(outcomes):
  assert outcomes["file"][0] == 0
  assert json.loads((outcomes["folder"] / "a" / "b" / "toy.json").read_text())["text"] == "é\n"


def test_a_mistake_is_one_paragraph(outcomes):
  assert outcomes["mistake"] == (2, "", "toy_experiment: error: this is not how it is done\n")


@pytest.mark.parametrize("case", ["bug", "bug of ours", "bug of jax"])
def test_a_bug_shows_its_traceback(outcomes, case):
  code, _, err = outcomes[case]
  assert code == 1 and "Traceback" in err and "toy_experiment.py" in err


def test_an_interruption_is_no_bug(outcomes):
  assert outcomes["interrupt"] == (130, "", "toy_experiment: error: interrupted\n")


def test_an_experiment_without_a_configuration_has_no_such_flag(outcomes):
  code, _, err = outcomes["no configuration"]
  assert code == 2 and "Unknown command line flag 'config.gamma'" in err


def test_a_folder_that_takes_no_file_is_refused_before_the_work(outcomes):
  code, out, err = outcomes["no place"]
  assert (code, out) == (2, "") and "--out=/proc/self: no file can be written there" in err


def test_a_folder_may_have_any_name(outcomes):
  assert outcomes["a byte"][0] == 0, outcomes["a byte"]
  assert (outcomes["folder"] / "\udcff" / "toy.json").exists()


def test_a_full_disk_leaves_the_result_on_stdout(monkeypatch, tmp_path, capsys):
  def full(*_):
    raise OSError(28, "No space left on device")

  if not flags.FLAGS.is_parsed():
    flags.FLAGS(["test"])
  monkeypatch.setattr(app.strict_json, "write", full)
  with flagsaver.flagsaver(out=str(tmp_path), json=True), pytest.raises(OSError):
    app.emit("toy", dict(number=3))
  assert json.loads(capsys.readouterr().out) == {"number": 3}


@pytest.mark.parametrize("out", [None, "DIR"])
def test_a_reader_may_go_while_there_is_work_to_keep(out):
  if not flags.FLAGS.is_parsed():
    flags.FLAGS(["test"])
  reader, writer = os.pipe()
  stream = io.TextIOWrapper(io.BufferedWriter(app._Pipe(writer, "w")))
  stream.write("a")
  stream.flush()
  assert os.read(reader, 9) == b"a"
  os.close(reader)
  with flagsaver.flagsaver(out=out):
    if out is None:
      with pytest.raises(SystemExit):
        stream.write("a\n" * 9999)
        stream.flush()
    stream.write("b\n" * 9999)
    stream.close()


@pytest.mark.parametrize("closed", ["", ">&-", ">&- 2>&-", "| head -c 0", "2>&1 | head -c 0"])
def test_nobody_need_read_what_out_keeps(tmp_path, closed):
  command = f"{sys.executable} -m tests.launch.toy_experiment --json --out={tmp_path} {closed}"
  done = subprocess.run(
      ["bash", "-o", "pipefail", "-c", command], cwd=forked.ROOT, capture_output=True, text=True)
  assert done.returncode == 0 and "Exception" not in done.stderr, done.stderr
  assert json.loads((tmp_path / "toy.json").read_text())["text"] == "é\n"


def test_without_work_to_keep_a_reader_that_goes_ends_the_program():
  command = f"{sys.executable} -m tests.launch.toy_experiment --what=talk | head -1"
  done = subprocess.run(
      ["bash", "-o", "pipefail", "-c", command], cwd=forked.ROOT, capture_output=True, text=True)
  assert (done.returncode, done.stdout, done.stderr) == (0, "words without end\n", "")
