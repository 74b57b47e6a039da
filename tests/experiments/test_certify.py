"""`python -m experiments.certify`: the table, the JSON, the exit codes."""

import json

import jax.numpy as jnp
import pytest
from absl import flags
from absl.testing import flagsaver
from jax.tree_util import Partial

from experiments import certify
from specjax import verify
from specjax.launch import registry
from specjax.types import Decision
from tests.launch import forked


def test_select():
  assert certify.select("block") == ["block"]
  assert certify.select("block,typical:0.1,0.2,lenient") == [
      "block", "typical:0.1,0.2", "lenient:0.8"]
  every = certify.select("all")
  assert len(every) == len(registry.RULES) and "lenient:0.8" in every
  for spec in every:
    registry.rule(spec)
  assert certify.select("specjax.verify.template:template,token") == [
      "specjax.verify.template:template", "token"]
  with pytest.raises(ValueError, match="no rule 'blok'; did you mean 'block'"):
    certify.select("token,blok")


def test_the_program():
  from_flags = [["experiments.certify", *line] for line in (
      ["--rule=token,lenient", "--json"], ["--rule=tokn"], ["--rule=lenient:7"], ["--rules=token"],
      ["token"])]
  (code, out, err), *bad = forked.run(from_flags)
  assert code == 0, err
  result = json.loads(out.splitlines()[-1])
  assert result["passed"] is True and result["manifest"]["seed"] == 0
  token, lenient = result["rules"]
  assert token["rule"] == "token" and token["lossless"] and token["max_tv"] <= 1e-12
  assert lenient["rule"] == "lenient:0.8" and not lenient["claims_lossless"]
  assert lenient["max_tv"] > .1
  two = next(case for case in token["cases"] if case["drafts"] == "chain 3, last not drafted")
  assert two["accepted"]["AB"] == pytest.approx(10 / 9, abs=1e-12)
  assert "| token" in out and "BIASED" not in out
  for (code, out, err), says in zip(
      bad,
      ("did you mean 'token'?", "factor", "Unknown command line flag 'rules'", "--flag=value")):
    assert code == 2 and says in err and "Traceback" not in err
    assert out == "" and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "accept, lossless, finding", [(1.0, True, "BIASED"), (1.5, False, "NO LAW")])
def test_a_false_claim_fails_the_program(
    accept, lossless, finding, monkeypatch, capsys, tmp_path):
  accepts_all = verify.Rule(
      Partial(lambda draft, log_p: Decision(jnp.full_like(log_p[1:, 0], accept), log_p)),
      lossless=lossless, coupled=False, serves=verify.CHAINS, bottom_up=False)
  monkeypatch.setattr(registry, "rule", lambda spec: accepts_all)
  flags.FLAGS.mark_as_parsed()
  with flagsaver.flagsaver(rule="token", json=True, out=str(tmp_path)):
    assert certify.main([]) == 1
  out = capsys.readouterr().out
  assert finding in out and json.loads(out.splitlines()[-1])["passed"] is False
  assert (tmp_path / "certify.md").read_text() in out
  assert json.loads((tmp_path / "certify.json").read_text())["passed"] is False
