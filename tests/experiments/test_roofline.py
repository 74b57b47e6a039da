"""`python -m experiments.roofline`: known figures, the true size of a model, a plot."""

import json
import pathlib

import pytest

from tests.launch import forked

TINY = pathlib.Path(__file__).parents[1] / "loading" / "goldens" / "llama"


def roofline(*command_lines):
  return forked.run([["experiments.roofline", *line] for line in command_lines])


def result(outcome) -> dict:
  code, out, err = outcome
  assert code == 0, err
  return json.loads(out.splitlines()[-1])


def test_what_a_run_prints(tmp_path):
  shape = ["--layers=32", "--heads=32", "--kv_heads=8", "--head_size=128"]
  table, single, context, tiny = roofline(
      ["--json"],
      ["--json", "--dtype=float32", f"--out={tmp_path}"],
      ["--json", "--device=H100,TPU v5e", "--parameters=8.03e9", "--batch=4", "--context=8192",
       "--rows=5", *shape],
      ["--json", "--device=H100", f"--config={forked.ROOT / 'configs' / 'smollm2.py'}",
       f"--config.target={TINY}", "--config.batch_size=2", "--context=100"])
  h100 = result(table)["devices"]["H100"]
  assert h100["memory_seconds"] == pytest.approx(4.776e-3, abs=1e-6)
  assert h100["tokens_per_second"] == pytest.approx(209.4, abs=.05)
  assert h100["free_rows"] == pytest.approx(295.2, abs=.05)
  assert set(result(table)["devices"]) == {"A100", "H100", "H200", "B200", "TPU v5e", "TPU v5p"}
  assert "| H100 " in table[1] and "free rows: rows of each sequence" in table[1]
  assert set(result(single)["devices"]) == {"A100", "H100", "H200", "B200"}
  assert "without a published peak for float32: TPU v5e, TPU v5p" in single[1]
  assert (tmp_path / "roofline.png").read_bytes()[:4] == b"\x89PNG"
  assert json.loads((tmp_path / "roofline.json").read_text()) == result(single)
  cached = result(context)["devices"]["TPU v5e"]
  assert cached["cache_bytes"] == 4 * 8192 * 131072 and cached["flops"] > 4 * 5 * 2 * 8.03e9
  small = result(tiny)
  config = json.loads((TINY / "config.json").read_text())
  assert small["attention"]["layers"] == config["num_hidden_layers"] and small["batch"] == 2
  assert small["dtype"] == "float32" and 0 < small["parameters"] < 1e6
  assert small["devices"]["H100"]["cache_bytes"] > 0


def test_bad_input_is_answered_in_one_paragraph():
  cases = [
      ([f"--config={forked.ROOT / 'configs' / 'table.py'}"], "table:2 is none"),
      (["--device=H10"], "there is no 'H10'; did you mean 'H100'?"),
      (["--device=TPU v5e", "--dtype=float32"], "TPU v5e has no published peak for dtype float32"),
      (["--parameters=0"], "parameters must be positive"),
      (["--batch=0"], "--batch=0"),
      (["--rows=0"], "--rows=0"),
      (["--context=100"], "--context needs --layers"),
      (["--context=100", "--layers=2"], "--heads, --kv_heads, --head_size: missing"),
      (["--context=-1"], "--context=-1"),
      (["--layers=0"], "--layers=0"),
      (["--config=configs/smollm2.py", "--parameters=1"], "need no flags"),
      (["--config.gamma=3"], "--config=FILE should name it"),
      (["--config=none.py"], "no configuration file 'none.py'"),
  ]
  for (arguments, complaint), (code, out, err) in zip(
      cases, roofline(*[arguments for arguments, _ in cases])):
    assert complaint in err, (arguments, err)
    assert code == 2 and "Traceback" not in err and out == "", (arguments, code, err)
    assert len(err.strip().splitlines()) == 1, err
