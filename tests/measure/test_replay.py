"""Records of decoding runs: read with care, compared token by token."""

import json

import pytest

from specjax.launch import config, errors, record, strict_json
from specjax.launch.prompts import Conversation
from specjax.measure import job, replay

JOB = job.Job(
    config.DecodeConfig(gamma=3, temperature=0.7), 12,
    [Conversation("x", "chat", ("one", "two"), "file, line 1")], False, ["end"])
TOKENS = [[1, 2, 3], [4, 5]]


def written(tmp_path, **changes):
  found = dict(
      tokens=TOKENS, inputs=JOB.inputs(), manifest=record.manifest(JOB.seed, JOB.config)) | changes
  path = tmp_path / "decode.json"
  path.write_text(strict_json.dumps(found) + "\n")
  return str(path)


def test_a_record_holds_the_whole_job(tmp_path):
  read = replay.load(written(tmp_path))
  assert read.job == JOB and read.tokens == TOKENS


def test_the_saved_output_of_a_run_is_a_record(tmp_path):
  path = written(tmp_path)
  text = open(path).read()
  open(path, "w").write("a table\n\n" + text)
  assert replay.load(path).job == JOB


def test_equal_tokens_are_identical(tmp_path):
  read = replay.load(written(tmp_path))
  found = replay.compare(read, TOKENS, record.manifest(JOB.seed, JOB.config))
  assert found["identical"] and found["changed"] == {} and found["answer"] is None
  assert "bit-identical" in replay.describe(found)


@pytest.mark.parametrize("tokens, place", [
    ([[1, 2, 3], [4, 6]], (1, 1, 5, 6)), ([[1, 2], [4, 5]], (0, 2, 3, None)),
    ([[1, 2, 3], [4, 5, 7]], (1, 2, None, 7)), ([[1, 2, 3]], (1, 0, 4, None))])
def test_the_first_difference_is_named(tmp_path, tokens, place):
  read = replay.load(written(tmp_path))
  found = replay.compare(read, tokens, read.manifest)
  assert not found["identical"]
  assert (found["answer"], found["position"], found["recorded"], found["replayed"]) == place
  assert "DIFFERS" in replay.describe(found)


def test_what_changed_about_the_run_is_named(tmp_path):
  read = replay.load(written(tmp_path))
  now = json.loads(strict_json.dumps(read.manifest))
  now["device"]["kind"], now["prng"]["implementation"] = "H200", "rbg"
  now["command"] = ["other"]
  found = replay.compare(read, TOKENS, now)
  assert set(found["changed"]) == {"device.kind", "prng.implementation"}
  assert "recorded threefry2x32, now rbg" in replay.describe(found)


@pytest.mark.parametrize("changes", [
    dict(manifest=None), dict(inputs={}), dict(tokens=[["a", "b"]] * 2), dict(tokens=3),
    dict(inputs=dict(conversations=[], apply_chat_template=True, stop=[])),
    dict(manifest=dict(config=dict(gamma=-1), seed=0)),
    dict(manifest=dict(config=dict(gama=1), seed=0)),
    dict(manifest=dict(config={}, seed="x")), dict(manifest=dict(config={}, seed=1.5)),
    dict(manifest=dict(config=dict(temperature=10**400), seed=0)),
    dict(tokens=[[1.5]]), dict(tokens=["12"]), dict(tokens=[[True]]),
    dict(inputs=JOB.inputs() | dict(stop="end")),
    dict(inputs=JOB.inputs() | dict(apply_chat_template="false")),
    *(dict(inputs=JOB.inputs() | dict(conversations=[
        JOB.conversations[0]._asdict() | dict(turns=turns)])) for turns in ("one", [""], [3]))])
def test_bad_records_are_refused(tmp_path, changes):
  path = written(tmp_path, **changes)
  with pytest.raises(ValueError, match="not a record") as error:
    replay.load(path)
  assert errors.is_user_error(error.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\xff\xfe", "[" * 100_000, "9" * 5000])
def test_other_files_are_refused(tmp_path, text):
  path = tmp_path / "x.json"
  path.write_bytes(text.encode("latin-1"))
  with pytest.raises(ValueError, match="not a record"):
    replay.load(str(path))


def test_a_missing_file_is_named():
  with pytest.raises(ValueError, match="no such file"):
    replay.load("nowhere.json")
