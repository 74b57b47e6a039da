"""The registry of published numbers: it computes, can fail, and claims no more than it ran."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from experiments import reproduce
from experiments.papers import claim, faults, PAPERS, rounds, toys, zhou2026
from specjax import verify
from specjax.exact import drafts

_CLAIMS = [(key, one) for key, paper in PAPERS.items() for one in paper.claims]


@pytest.fixture(scope="module")
def rows():
  return reproduce.reproduce(PAPERS, seed=0)


def _check(one: claim.Claim) -> claim.Row:
  return claim.check("a paper", one, "a command", seed=0)


def test_every_claim_computes_and_agrees(rows):
  for row in rows:
    assert row.verdict in claim.VERDICTS
    assert row.verdict != claim.NOT_REPRODUCED, row


def test_there_are_enough_claims_from_enough_sources(rows):
  computed = [row for row in rows if row.verdict == claim.REPRODUCED]
  assert len(computed) >= 60 and len({row.paper for row in computed}) >= 12


def test_each_row_says_where_it_is_from_and_how_to_run_it(rows):
  for row in rows:
    assert row.place and row.quantity and row.command.startswith("python -m experiments.")
    assert row.origin in claim.ORIGINS
  assert len({(row.paper, row.place, row.quantity) for row in rows}) == len(rows)


def test_numbers_of_large_models_are_never_computed(rows):
  large = [row for row in rows if row.kind == claim.WEIGHTS]
  assert large
  for row in large:
    assert row.ours is None and row.difference is None and row.verdict == claim.NEEDS_WEIGHTS
    assert "experiments.sweep" in row.command
  assert all(one.ours is None for _, one in _CLAIMS if one.kind == claim.WEIGHTS)
  assert all(row.ours is not None for row in rows if row.kind != claim.WEIGHTS)


def test_figures_without_a_source_are_labelled(rows):
  blog = [row for row in rows if "source not located" in row.paper]
  assert len(blog) == 11 and all(row.origin == claim.ARITHMETIC for row in blog)


def test_simulated_claims_state_their_number_and_depend_on_the_seed():
  one = next(one for _, one in _CLAIMS if one.kind == claim.SIMULATED and one.tolerance > 0)
  assert "n = " in one.note and "sigma" in one.note
  assert one.ours(0) == one.ours(0) != one.ours(1)


def test_contradictions_carry_a_number_of_ours(rows):
  found = reproduce.contradictions(PAPERS)
  assert {"zhou2026", "thomas2026", "thomas2026b"} <= {each["paper"] for each in found}
  assert all(any(c.isdigit() for c in each["finding"]) for each in found)


@pytest.mark.parametrize("wrong", [10 / 9, 1.25, float("nan"), -1.0])
def test_a_wrong_value_is_not_reproduced(wrong):
  ours = lambda: rounds.chain_tau(verify.block, toys.AB, 2)
  assert _check(claim.derived("", "", 11 / 9, ours)).verdict == claim.REPRODUCED
  assert _check(claim.derived("", "", wrong, ours)).verdict == claim.NOT_REPRODUCED


def test_a_wrong_rule_is_not_reproduced():
  ours = lambda: rounds.chain_tau(faults.block_without_clip, toys.AB, 2)
  assert _check(claim.derived("", "", 11 / 9, ours)).verdict == claim.NOT_REPRODUCED


def test_one_wrong_number_of_several_is_enough():
  one = claim.Claim("", "", (1.0, 2.0, 3.0), lambda: (1.0, 2.0, 3.1), 0.05)
  row = _check(one)
  assert row.verdict == claim.NOT_REPRODUCED and row.difference == pytest.approx(0.1)
  assert _check(one._replace(tolerance=0.11)).verdict == claim.REPRODUCED


def test_nan_of_ours_is_not_reproduced():
  one = claim.Claim("", "", 1.0, lambda: float("nan"), 10.0)
  assert _check(one).verdict == claim.NOT_REPRODUCED


def test_values_of_different_shapes_are_an_error():
  with pytest.raises(ValueError, match="compares"):
    _check(claim.Claim("", "a pair", (1.0, 2.0), lambda: 1.0))


@pytest.mark.parametrize("ours,verdict", [
    (0.5, claim.DIRECTION_ONLY), (0.083, claim.DIRECTION_ONLY), (-0.1, claim.NOT_REPRODUCED),
    (0.0, claim.NOT_REPRODUCED), (float("nan"), claim.NOT_REPRODUCED)])
def test_a_direction_is_never_reproduced(ours, verdict):
  assert _check(claim.Claim("", "", 0.083, lambda: ours, direction=True)).verdict == verdict


def test_weights_never_count_even_if_a_function_is_given():
  one = claim.needs_weights("", "", 1.0, "a command")._replace(ours=lambda: 1.0)
  row = _check(one)
  assert row.verdict == claim.NEEDS_WEIGHTS and row.ours is None and row.command == "a command"


def test_seed_reaches_simulated_claims_alone():
  one = claim.Claim("", "", 7.0, lambda seed: seed, kind=claim.SIMULATED)
  assert claim.check("", one, "", seed=7).verdict == claim.REPRODUCED
  assert claim.check("", one, "", seed=8).verdict == claim.NOT_REPRODUCED


def test_shorter_chains_cut_from_a_longer_one_are_the_chains_themselves():
  for rule in (verify.token, verify.block, zhou2026.hierarchical, faults.block_without_clip):
    whole = rounds.judged(rule, drafts.chain(2), toys.P3)
    np.testing.assert_allclose(rounds.judged(rule, rounds.chain(2), toys.P3), whole, atol=1e-15)


def test_padding_of_one_position_changes_nothing():
  # 2 drafts of 2 tokens by hand: recursive rejection accepts 1 - TV, then of the residual (0, 1)
  # against q = (2/3, 1/3) another third.
  assert toys.hit(verify.recursive, toys.AB, 2) == pytest.approx(2 / 3 + 1 / 3 * 1 / 3, abs=1e-15)
  assert toys.output(verify.recursive, toys.AB, 2).shape == (2,)


def test_joined_paths_are_lossless_and_accept_more():
  for rule in (verify.recursive, verify.kseq, verify.specinfer):
    tv, tau = rounds.joined_paths(rule, toys.P3)
    assert tv < 1e-14 and tau > rounds.two_paths(rule, toys.P3)


def test_hierarchical_verification_is_block_verification_and_its_variants_are_not():
  assert rounds.largest_gap(zhou2026.hierarchical, verify.block, 2) < 1e-14
  assert rounds.largest_gap(zhou2026.released, verify.block, 2) > 1e-2
  assert rounds.largest_gap(faults.block_with_clipped_factors, verify.block, 2) > 1e-3


def test_select():
  assert reproduce.select(None) is PAPERS
  assert list(reproduce.select("sun2025")) == ["sun2025"]
  with pytest.raises(ValueError, match="no 'leviathan'; did you mean 'leviathan2023'"):
    reproduce.select("leviathan")


def test_report_has_a_row_and_a_command_for_each_claim(rows):
  text = reproduce.report(rows, [dict(paper="a", statement="b.", finding="c 1.")])
  assert text.count("\n| ") == len(rows) + 2 and "## Contradictions" in text
  assert all(f"`{row.command}`" in text for row in rows) and reproduce.summary(rows) in text


def _run(*flags):
  return subprocess.run(
      [sys.executable, "-m", "experiments.reproduce", *flags], capture_output=True, text=True,
      cwd=pathlib.Path(__file__).parents[2], timeout=300)


def test_command_line(tmp_path):
  done = _run("--paper=khisti2025", "--json", f"--out={tmp_path}")
  assert done.returncode == 0, done.stderr
  result = json.loads(done.stdout.splitlines()[-1])
  wanted = {"paper", "place", "quantity", "value", "ours", "tolerance", "kind", "verdict"}
  assert len(result["claims"]) == 3 and all(wanted <= set(row) for row in result["claims"])
  assert {row["verdict"] for row in result["claims"]} == {"reproduced"}
  assert json.loads((tmp_path / "reproduce.json").read_text()) == result
  assert (tmp_path / "reproduce.md").read_text().count("--paper=khisti2025") == 3


def test_an_unknown_paper_is_one_paragraph_and_exit_code_2():
  done = _run("--paper=nobody1999")
  assert done.returncode == 2 and done.stdout == ""
  assert done.stderr.count("\n") == 1 and "nobody1999" in done.stderr and "sun2025" in done.stderr
