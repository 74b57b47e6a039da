"""`python -m experiments.costs` with a tiny model."""

import json
import pathlib

from tests.launch import forked

TINY = pathlib.Path(__file__).parents[1] / "loading" / "goldens" / "llama"


def test_what_a_run_prints():
  tiny = ["experiments.costs", f"--config.target={TINY}", "--config.max_new_tokens=8", "--json"]
  (code, out, err), (wrong, _, complaint) = forked.run([
      [*tiny, "--drafter=ngram,layer_skip:1", "--config.strict"],
      [*tiny, "--drafter=layer_skip:3"]])
  assert code == 0, err
  found = json.loads(out.splitlines()[-1])
  assert set(found["costs"]) == {"ngram", "layer_skip:1"}
  assert found["costs"]["ngram"]["window"] == {str(width): 1.0 for width in range(1, 9)}
  assert set(found["best"]["ngram"].values()) <= set(range(8))
  assert "break-even alpha for gamma" in out and "V(8)" in out
  assert wrong == 2 and "layers 1 to 2" in complaint
