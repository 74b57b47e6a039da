"""The frame of experiments: exit codes, streams, files."""

import json

import pytest

from tests.launch import forked

CASES = {
    "result": ["--json"],
    "silent": [],
    "failure": ["--what=failure", "--json"],
    "file": ["--out=@/a/b"],
    "mistake": ["--what=mistake", "--json"],
    "bug": ["--what=bug"],
    "bug of jax": ["--what=bug of jax"],
    "interrupt": ["--what=interrupt"],
    "no configuration": ["--config.gamma=1"],
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


@pytest.mark.parametrize("case", ["bug", "bug of jax"])
def test_a_bug_shows_its_traceback(outcomes, case):
  code, _, err = outcomes[case]
  assert code == 1 and "Traceback" in err and "toy_experiment.py" in err


def test_an_interruption_is_no_bug(outcomes):
  assert outcomes["interrupt"] == (130, "", "toy_experiment: error: interrupted\n")


def test_an_experiment_without_a_configuration_has_no_such_flag(outcomes):
  code, _, err = outcomes["no configuration"]
  assert code == 2 and "Unknown command line flag 'config.gamma'" in err
