"""`python -m experiments.decode` with a tiny model: what it prints, and says of bad input."""

import dataclasses
import json
import pathlib
import shutil

import pytest

from specjax.launch import prompts, registry
from specjax.launch.config import DecodeConfig
from tests.launch import forked

TINY = pathlib.Path(__file__).parents[1] / "loading" / "goldens" / "llama"
TARGET = f"--config.target={TINY}"
SHORT = "--config.max_new_tokens=8"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  folder = tmp_path_factory.mktemp("prompts")
  write = lambda name, *lines: (folder / name).write_text("\n".join(lines) + "\n") and None
  write("good.jsonl", '{"turns": ["ab", "cd"]}', '{"prompt": "the the the"}')
  write("bad.jsonl", '{"prompt": "ab"}', '{"prompt": ')
  write("long.jsonl", '{"prompt": "ab"}', json.dumps({"prompt": "ab " * 200}))
  write("syntax.py", "def get_config(:")
  write("exit.py", "raise SystemExit(0)")
  write("dict.py", "get_config = dict")
  shutil.copytree(TINY, folder / "bare", ignore=shutil.ignore_patterns("tokenizer.json"))
  return folder


def decode(*command_lines):
  return forked.run([["experiments.decode", *line] for line in command_lines])


def result(outcome) -> dict:
  code, out, err = outcome
  assert code == 0, err
  return json.loads(out.splitlines()[-1])


CONTRACT = {
    "tokens", "text", "tau", "alpha", "acceptance_by_position", "rounds", "tokens_per_second",
    "baseline_tokens_per_second", "speedup", "predicted_speedup", "identical_to_baseline",
    "manifest"}


def test_what_a_run_prints(files):
  prompt = "--prompt=the cat the cat the"
  many, seed = f"--prompts={files / 'good.jsonl'}", "--seed=9007199254740993"
  plain, coupled, again, none = decode(
      [TARGET, SHORT, prompt, "--json", f"--out={files / 'out'}"],
      [TARGET, SHORT, many, "--json", "--config.temperature=1", "--config.rule=gumbel", seed],
      [TARGET, SHORT, many, "--json", "--config.temperature=1", "--config.rule=gumbel", seed,
       "--config.gamma=2", "--config.drafter=layer_skip:1", "--config.batch_size=2",
       "--config.strict"],
      [TARGET, SHORT, many, "--json", "--config.gamma=0", "--noapply_chat_template"])
  first = result(plain)
  assert CONTRACT <= set(first) and first["identical_to_baseline"] is True
  assert len(first["tokens"]) == len(first["text"]) == 1 and len(first["tokens"][0]) <= 8
  assert len(first["acceptance_by_position"]) == 4
  assert plain[1].startswith(first["text"][0]) and "tokens emitted / target passes" in plain[1]
  assert json.loads((files / "out" / "decode.json").read_text()) == first
  assert result(coupled)["manifest"]["seed"] == 2**53 + 1
  manifest = first["manifest"]
  assert manifest["prng"] == {"implementation": "threefry2x32", "threefry_partitionable": True}
  assert manifest["matmul_precision"] == "highest"
  assert "--xla_gpu_deterministic_ops=true" in manifest["xla_flags"]
  assert manifest["config"]["target"] == str(TINY) and len(manifest["models"]["target"]) == 64
  # Coupled text depends on the seed and the target alone: not on gamma, drafter or batch.
  assert result(coupled)["tokens"] == result(again)["tokens"]
  assert result(coupled)["identical_to_baseline"] is result(again)["identical_to_baseline"] is True
  assert len(result(coupled)["tokens"]) == 3
  assert result(none)["tau"] == 1 and result(none)["alpha"] is None


def test_a_chosen_gamma_is_played_again(files):
  """The replay measures nothing. In strict mode, where there is one width to measure."""
  out = files / "chosen"
  drafts = [
      TARGET, SHORT, "--config.drafter=layer_skip:1", "--prompt=the cat", "--json",
      "--config.strict"]
  first, replayed, stopping = decode(
      [*drafts, "--config.gamma=auto", f"--out={out}"],
      [f"--replay={out / 'decode.json'}", "--json"],
      [*drafts, "--config.gamma=3", "--config.stop_below=0.01"])
  chosen = result(first)
  gamma = chosen["choice"]["gamma"]
  assert chosen["manifest"]["config"]["gamma"] == gamma and f"gamma = {gamma} (auto)" in first[1]
  again = result(replayed)
  assert again["replay"]["identical"] and again["manifest"]["config"]["gamma"] == gamma
  assert "choice" not in again and "(auto)" not in replayed[1]
  ended = result(stopping)
  assert ended["identical_to_baseline"] and ended["tokens"] == chosen["tokens"]
  assert 0 <= ended["drafted_tokens"] <= 3 and 1 <= ended["draft_steps"] <= 3


def test_bad_input_is_answered_in_one_paragraph(files):
  cases = [
      (["--prompt=a", "--config.gama=3"], "did you mean 'gamma'"),
      (["--prompt=a", "--config.gamma=-1"], "config.gamma must be from 0"),
      (["--prompt=a", "--config.gamma=x"], "or 'auto', got 'x'"),
      (["--prompt=a", "--config.gamma=1.5"], "or 'auto', got '1.5'"),
      (["--prompt=a", "--config.stop_below=0.5", TARGET], "config.stop_below: the drafter ngram"),
      (["--prompt=a", "--config.gamma=auto", "--config.stop_below=0.5"], "give a number"),
      (["--prompt=a", "--config.a.b=1"], "unknown key 'a.b'"),
      (["--prompt=a", "--config.=1"], "unknown key ''; known are batch_size"),
      (["--prompt=a", "--config.gamma.x=1"], "unknown key 'gamma.x'; did you mean 'gamma'"),
      (["--prompt=a", "--config.gamma[0]=1"], "unknown key 'gamma[0]'; did you mean 'gamma'"),
      (["--prompt=a", f"--config={files / 'exit.py'}"], "exit.py, line 1)"),
      (["--prompt=a", f"--config={files / 'dict.py'}"], "gives a ConfigDict, not a dict"),
      (["--prompt=a", "--config.tree=x"], "config.tree"),
      (["--prompt=a", "--config.strict", "--config.gamma=8"], "at most 7; got 8"),
      (["--prompt=a", "--config.rule=tokn"], "did you mean 'token'"),
      (["--prompt=a", "--config.drafter=/none", TARGET], "'/none' is neither the path"),
      (["--prompt=a", "--config.target=/none.gguf"], "/none.gguf: no such file"),
      (["--prompt=a", "--config=/none.py"], "no configuration file '/none.py'"),
      (["--prompt=a", "--config=smolm2"], "; did you mean 'configs/smollm2.py'?"),
      (["--prompt=a", f"--config={files / 'dct.py'}"], "dict.py'?"),
      (["--prompt=a", f"--config={files / 'syntax.py'}"], "SyntaxError"),
      (["--prompt=a", "--sed=1"], "Did you mean: seed"),
      (["--prompt=a", "--gamma=4"], "is given as --config.gamma=VALUE"),
      (["--prompt=a", "--nostrict"], "is given as --config.strict=VALUE"),
      (["--replay=r", "--config.gamma=3", "--noconfig.strict"],
       " --config.gamma, --config.strict "),
      (["--replay=r", "--config", "configs/smollm2.py"], "so --config would change nothing"),
      (["--replay=r", "--prompt=a", "--prompts=mini", "--seed=0", "--noapply_chat_template",
        "--stop=a"], "so --prompt, --prompts, --seed, --apply_chat_template, --stop would"),
      (["--replay=r"], "--replay=r: there is no such file"),
      (["--prompt=a", "--config.target=table:1"], "prompt instead. --noapply_chat_template takes"),
      (["--prompt=a", f"--config.target={files / 'bare'}"], "bare: there is no tokenizer.json"),
      (["--prompts=extracton"], "did you mean 'extraction'"),
      (["--prompt=a", "--seed=-1"], "a seed is an integer from 0 to 2^63 - 1"),
      (["--prompt=a", "--seed=one"], "a seed is an integer"),
      (["--prompt=a", "--seed=9223372036854775808"], "a seed is an integer"),
      (["--prompt=a", "stray"], "unexpected argument 'stray'"),
      (["--prompt=a", f"--out={files / 'bad.jsonl'}"], "bad.jsonl"),
      (["--prompt=", TARGET], "the prompt is empty"),
      ([], "give either --prompt"),
      (["--prompt=a", "--prompts=mini"], "give either --prompt"),
      (["--prompts=none.jsonl"], "none.jsonl"),
      ([f"--prompts={files / 'bad.jsonl'}"], "bad.jsonl, line 2: not JSON"),
      ([f"--prompts={files / 'long.jsonl'}", TARGET], "long.jsonl, line 2: turn 1 makes"),
  ]
  outcomes = decode(*[arguments for arguments, _ in cases])
  for (arguments, complaint), (code, out, err) in zip(cases, outcomes):
    assert complaint in err, (arguments, err)
    assert code == 2 and "Traceback" not in err and out == "", (arguments, code, err)
    assert len(err.strip().splitlines()) == 1 and err.startswith("decode: error: "), err


def test_help_shows_the_flags_and_keys():
  (code, out, err), = decode(["--help"])
  for field in dataclasses.fields(DecodeConfig):
    assert f"config.{field.name}: " in out + err
  told = " ".join((out + err).split())
  assert "keeps the k most likely tokens; 0: off (default: 0)" in told
  assert all(name in told for name in (*registry.RULES, *registry.DRAFTERS, *prompts.SETS))
  assert "(default: 'configs/smollm2.py')" in out + err
  for flag in (
      "--config", "--prompt", "--prompts", "--seed", "--out", "json", "apply_chat_template"):
    assert flag in out + err
