"""`python -m experiments.bench` with a tiny model, and the contest that it holds."""

import json
import pathlib

import numpy as np
import pytest

from experiments.benchmarks import contest, tables
from specjax import decode
from specjax.launch import prompts
from tests.launch import forked, toys

TINY = pathlib.Path(__file__).parents[1] / "loading" / "goldens" / "qwen2"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
  folder = tmp_path_factory.mktemp("bench")
  (folder / "prompts.jsonl").write_text(
      '{"prompt": "the cat the cat the", "category": "a"}\n'
      '{"prompt": "a hot dog", "category": "b"}\n')
  good = [
      f"--config.target={TINY}", "--config.max_new_tokens=6", "--config.gamma=3",
      f"--prompts={folder / 'prompts.jsonl'}", "--drafter=ngram", "--repeats=1"]
  ran = forked.run([["experiments.bench", *arguments] for arguments in (
      [*good, "--section=model,peers", "--json", f"--out={folder / 'out'}"],
      [*good, "--section=model,speed"], [*good, "--config.temperature=0.5"],
      [*good, "--config.gamma=0"], [*good, "--section=peers", "--peer_python=/no/such/python"],
      ["--section=verify", "--rule=tokn"], [*good, "--repeats=0"],
      [f"--config.target={TINY.parent / 'mistral'}", *good[1:], "--section=peers",
       "--peer_python=" + _python_with_everything(folder)],
      ["--config.target=table:2", *good[1:]], [*good, "--prompts="], [*good, "--section="])])
  return folder / "out", ran


def _python_with_everything(folder) -> str:
  """An interpreter that answers as a worker with every library would."""
  path = folder / "python"
  path.write_text("#!/bin/sh\necho '{\"ready\": {}}'\n")
  path.chmod(0o755)
  return str(path)


def test_what_a_run_prints(outcomes):
  out, ((code, text, err), *_) = outcomes
  assert code == 0, err
  result = json.loads(text.splitlines()[-1])
  assert json.loads((out / "bench.json").read_text()) == result
  assert (out / "bench.md").read_text() in text.rsplit("\n", 2)[0] + "\n\n"
  assert {"model", "peers", "goals", "manifest"} == set(result)
  assert result["goals"] == []  # they are for the default model
  assert list(result["model"]["relative"]) == ["1", "2", "4", "8", "16"]
  rounds = result["model"]["rounds"]
  assert rounds["specjax plain"]["drafting"] == 0 < rounds["specjax ngram"]["drafting"] <= 1
  assert all(0 < each["outside"] for each in rounds.values())
  names = ["specjax plain", "specjax ngram"]
  decoders, skipped = result["peers"]["decoders"], result["peers"]["skipped"]
  assert list(decoders)[:2] == names and list(rounds) == [*names, "gumbel, T = 0.7"]
  assert all(decoders[name]["same_texts"] == 2 for name in decoders)
  assert decoders["specjax plain"]["tau"] == 1 and decoders["specjax ngram"]["tau"] > 1
  assert set(decoders["specjax plain"]["category_rates"]) == {"a", "b"}
  for peer in ("transformers", "llama.cpp"):  # either measured, or left out with a message
    assert (f"{peer} plain" in decoders) != (peer in skipped)
    assert peer not in skipped or f"{peer} left out: No module named" in text
  assert "V(n): target pass over n rows" in text and "alpha: drafted tokens accepted" in text


@pytest.mark.parametrize("index, said", [
    (1, "--section: 'speed' is none"), (2, "config.temperature is 0"),
    (3, "config.gamma is at least 1"), (4, "--peer_python=/no/such/python: cannot be started"),
    (5, "did you mean 'token'?"), (6, "repeats"),
    (7, "rotary frequencies that are stretched (linear)"),
    (8, "bench measures a transformer"), (9, "--prompts is empty"),
    (10, "--section is one or more of")])
def test_bad_input_is_one_paragraph(outcomes, index, said):
  code, _, err = outcomes[1][index]
  lines = err.strip().splitlines()
  assert code == 2 and said in err and "Traceback" not in err
  assert sum("error:" in line for line in lines) == 1


def test_contestants_play_in_turn():
  calls = []

  def contestant(name):
    def run(prompt):
      calls.append((name, prompt[0]))
      return contest.Played([1, 2], 0.5, 2, None)
    return run

  ticks = []
  played = contest.play_all(
      {name: contestant(name) for name in "abc"}, [[1], [2]], 2, lambda: ticks.append(1))
  assert calls[:3] == [("a", 1), ("b", 1), ("c", 1)]  # not counted
  order = ["".join(name for name, _ in calls[i:i + 3]) for i in range(3, len(calls), 3)]
  assert order == ["abc", "bca", "cab", "abc"] and len(ticks) == 12
  assert [prompt for _, prompt in calls[3::3]] == [1, 2, 1, 2]
  assert {name: [len(texts) for texts in each] for name, each in played.items()} == {
      name: [2, 2] for name in "abc"}


def conversations():
  return [prompts.Conversation(name, category, ("x",), "here")
          for name, category in (("one", "a"), ("two", "b"))]


def test_rates_ratios_and_texts():
  setup = toys.setup()
  text = lambda tokens, seconds: contest.Played(tokens, seconds, len(tokens), None)
  ours = [[text([1, 2], 1.0), text([3, 4], 3.0)], [text([1, 2], 2.0), text([3, 4], 2.0)]]
  other = [[text([1, 2], 4.0), text([3, 5], 4.0)], [text([1, 2], 1.0), text([3, 5], 1.0)]]
  results = contest.judge(
      setup, conversations(), [[0, 1], [1, 2]], {contest.PLAIN: ours, "other": other})
  assert results[contest.PLAIN].rates == [1.0, 1.0] and results["other"].rates == [0.5, 2.0]
  assert results["other"].rate == 1.25
  assert results[contest.PLAIN].category_rates == {"a": [2.0, 1.0], "b": [2 / 3, 1.0]}
  assert contest.ratio(results, contest.PLAIN, "other") == (1.25, 0.5, 2.0)
  assert contest.ratio(results, contest.PLAIN, "other", "a") == (2.25, 0.5, 4.0)
  assert results[contest.PLAIN].same_texts == 2 and results["other"].same_texts == 1
  (difference,) = results["other"].divergences
  assert (difference.name, difference.position, difference.tokens) == ("two", 1, (5, 4))
  shown = tables.peers(results, {"transformers": "not here"}, 2)
  assert "transformers left out: not here" in shown and "1 of 2 (margin " in shown


def test_our_contestants_decode_what_generate_decodes():
  setup = toys.setup(gamma=3)
  prompt = [0, 1, 2, 0, 1, 2, 0]
  padded, lengths = decode.pad([prompt])
  wanted = decode.generate(
      setup.plain, toys.KEY, setup.params, padded, lengths, 12, eos=setup.model.tokenizer.eos_ids)
  wanted = np.asarray(wanted.tokens)[0, :int(wanted.lengths[0])].tolist()
  for decoder in (setup.plain, setup.speculative):
    contestant = contest.ours(setup, decoder, setup.params, toys.KEY, 12)
    first, second = contestant(prompt), contestant(prompt)
    assert first.tokens == second.tokens == wanted
    assert second.timed == len(wanted) == second.counts.emitted and second.seconds > 0
