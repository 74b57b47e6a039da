"""`python -m experiments.costs` with a tiny model."""

import json
import pathlib

from tests.launch import forked

TINY = pathlib.Path(__file__).parents[1] / "loading" / "goldens" / "llama"


def test_what_a_run_prints(tmp_path):
  short = ["experiments.costs", "--config.max_new_tokens=8", "--json"]
  table = [*short, "--config.target=table:2", "--config.strict"]
  first, (code, out, err), again, (wrong, _, complaint) = forked.run([
      [*table, "--drafter=ngram"],
      [*table, "--drafter=ngram,table:1"],
      [*table, "--drafter=ngram", "--remeasure"],
      [*short, f"--config.target={TINY}", "--drafter=layer_skip:3"]], SPECJAX_CACHE=str(tmp_path))
  assert code == 0, err
  found = json.loads(out.splitlines()[-1])
  assert set(found["costs"]) == {"ngram", "table:1"}
  assert found["costs"]["ngram"]["window"] == {str(width): 1.0 for width in range(1, 9)}
  assert set(found["best"]["ngram"].values()) <= set(range(8))
  assert "break-even alpha for gamma" in out and "V(8)" in out
  for _, fresh, told in (first, again):
    assert "| now" in fresh and "kept, " not in fresh and "measuring" in told
    assert "at different times" not in fresh and json.loads(fresh.splitlines()[-1])["kept"]
  kept = found["kept"]
  assert kept["table:1"] is None and f"| kept, {kept['ngram']} |" in out and "| now" in out
  assert "at different times" in out and err.count("measuring") == 1
  assert wrong == 2 and "layers 1 to 2" in complaint
