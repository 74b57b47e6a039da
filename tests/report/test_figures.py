"""The numbers of every figure, against sums over the rows; which are left out, and why."""

import math
import statistics

import numpy as np
import pytest

from specjax import theory
from specjax.report import by_batch, by_gamma, by_round, cells, figures, pairs, rows
from tests.report import sweeps


def pooled(made):
  return cells.pool(rows.read(sweeps.outcomes(made))[0])


@pytest.fixture(scope="module")
def made():
  return sweeps.sweep(
      gammas=(0, 2, 4), temperatures=(0.0, 1.0), rules=("token", "gumbel"), prompts=8)


@pytest.fixture(scope="module")
def found(made):
  return pooled(made)


def points(rows_of_figure, **axes):
  return [row for row in rows_of_figure if all(row.get(k) == v for k, v in axes.items())]


def result(made, **axes):
  [row] = [row for row in made if all(row["cell"][k] == v for k, v in axes.items())]
  return row["result"]


def total(result, name):
  return np.sum([prompt[name] for prompt in result["prompts"]], axis=0)


def test_the_heat_map_has_a_value_for_every_cell(made, found):
  table = figures.table(by_gamma.speedup(found))
  assert len(table) == len(made) == 12
  [point] = points(table, rule="token", gamma=4, temperature=1.0)
  of = result(made, rule="token", gamma=4, temperature=1.0)
  assert point["quantity"] == "speedup" and point["value"] == pytest.approx(
      total(of, "baseline_seconds") / total(of, "baseline_tokens") * total(of, "tokens")
      / total(of, "seconds"))
  assert point["low"] < point["value"] < point["high"]


def test_tau_and_alpha_stand_beside_their_theory(made, found):
  table = figures.table(by_gamma.tau_alpha(found))
  measured = dict(kind="measured", rule="token", gamma=4, temperature=0.0)
  of = [result(made, rule="token", gamma=gamma, temperature=0.0) for gamma in (2, 4)]
  tested, accepted = (sum(total(r, name).sum() for r in of) for name in ("tested", "accepted"))
  [tau], [alpha] = (points(table, quantity=name, **measured) for name in ("tau", "alpha"))
  assert tau["value"] == pytest.approx(total(of[1], "emitted") / total(of[1], "rounds"))
  assert alpha["value"] == pytest.approx(
      total(of[1], "accepted").sum() / total(of[1], "tested").sum())
  [line] = points(table, quantity="tau", **measured | dict(kind="theory"))
  share = sum(total(r, "drafting") for r in of) / sum(total(r, "rounds") for r in of)
  assert line["value"] == pytest.approx(
      1 + share * (theory.expected_tokens(accepted / tested, 4) - 1))
  [start] = points(table, quantity="tau", **measured | dict(kind="theory", gamma=0))
  assert start["value"] == 1
  assert not points(table, quantity="alpha", gamma=0)


def test_acceptance_by_position_of_the_longest_draft(made, found):
  table = figures.table(by_round.acceptance(found))
  of = result(made, rule="gumbel", gamma=4, temperature=1.0)
  for quantity, whole in (("conditional", total(of, "tested")), ("joint", total(of, "rounds"))):
    curve = points(table, rule="gumbel", temperature=1.0, quantity=quantity)
    assert [point["position"] for point in curve] == [1, 2, 3, 4]
    np.testing.assert_allclose([point["value"] for point in curve], total(of, "accepted") / whole)
  assert not points(table, gamma=2)


def test_shares_of_lengths_sum_to_one_and_their_mean_is_tau(made, found):
  table = figures.table(by_round.lengths(found))
  bars = points(table, rule="token", temperature=0.0)
  assert [bar["emitted"] for bar in bars] == [1, 2, 3, 4, 5]
  assert sum(bar["value"] for bar in bars) == pytest.approx(1)
  of = result(made, rule="token", gamma=4, temperature=0.0)
  assert sum(bar["emitted"] * bar["value"] for bar in bars) == pytest.approx(of["tau"])


def test_gumbel_stands_against_token(made, found):
  table = figures.table(pairs.gumbel(found))
  [point] = points(table, gamma=2, temperature=1.0)
  for rule, value in (("token", point["alpha_token"]), ("gumbel", point["value"])):
    of = result(made, rule=rule, gamma=2, temperature=1.0)
    assert value == pytest.approx(total(of, "accepted").sum() / total(of, "tested").sum())
  assert len(points(table, kind="measured")) == 4  # gamma = 0 accepts nothing
  bound = {row["alpha_token"]: row["value"] for row in points(table, series="(1 - TV) / (1 + TV)")}
  assert bound[0.5] == pytest.approx(1 / 3) and bound[1.0] == 1 and bound[0.0] == 0


def test_the_error_of_the_prediction_is_stated(found):
  drawn = pairs.predicted(found)
  table = points(figures.table(drawn), kind="measured")
  errors = [abs(row["predicted_speedup"] / row["value"] - 1) for row in table]
  assert len(errors) == 8
  assert f"median {statistics.median(errors):.0%}, largest {max(errors):.0%}" in drawn.caption


def test_rules_share_a_panel_and_temperatures_one_where_there_is_one_rule(found):
  for make in (by_gamma.tau_alpha, by_round.acceptance, by_round.lengths):
    panels = [group[0] for group in make(found).groups]
    assert [panel.title for panel in panels] == ["ngram, T = 0", "ngram, T = 1"]
    [[alone, *_]] = make([c for c in found if c.axes["rule"] == "token"]).groups
    labels = [{series.label for series in panel.series} for panel in (*panels, alone)]
    assert labels == [{"token", "gumbel"}] * 2 + [{"T = 0", "T = 1"}]
  [[panel]] = pairs.predicted(found).groups
  assert [series.label for series in panel.series] == [
      "token, T = 0", "token, T = 1", "gumbel, T = 0", "gumbel, T = 1", "equal"]


def test_batch_sizes():
  made = sweeps.sweep(gammas=(0, 2), temperatures=(0.0,), batch_sizes=(1, 4), prompts=4)
  table = figures.table(by_batch.batch(pooled(made)))
  of = result(made, gamma=2, batch_size=4)
  rate = total(of, "baseline_tokens") / total(of, "baseline_seconds")
  at = dict(batch_size=4, gamma=2)
  [predicted] = points(table, kind="predicted", quantity="tokens_per_second", **at)
  assert predicted["value"] == pytest.approx(of["predicted_speedup"] * rate)
  [measured] = points(table, kind="measured", quantity="tokens_per_second", **at)
  assert measured["value"] == pytest.approx(total(of, "tokens") / total(of, "seconds"))
  [plain] = points(table, kind="plain", batch_size=4)
  both = [result(made, gamma=gamma, batch_size=4) for gamma in (0, 2)]
  assert plain["value"] == pytest.approx(
      sum(total(r, "baseline_tokens") for r in both)
      / sum(total(r, "baseline_seconds") for r in both))


def test_one_batch_size_is_drawn_where_it_changes_nothing():
  found = pooled(sweeps.sweep(gammas=(2, 4), temperatures=(0.0,), batch_sizes=(2, 4), prompts=2))
  for make in (by_gamma.tau_alpha, by_round.acceptance, by_round.lengths):
    drawn = make(found)
    assert {row["batch_size"] for row in figures.table(drawn)} == {2}
    assert "the smallest is shown" in drawn.caption


@pytest.mark.parametrize("make, why", [
    (by_gamma.speedup, "two values of gamma"), (by_gamma.tau_alpha, "two values of gamma"),
    (pairs.gumbel, "gumbel and token"), (by_batch.batch, "two batch sizes")])
def test_a_figure_without_numbers_is_left_out(make, why):
  assert why in make(pooled(sweeps.sweep(gammas=(4,), prompts=2))).why


def test_plain_decoding_alone_has_no_figure():
  found = pooled(sweeps.sweep(gammas=(0,), prompts=2))
  for make in (by_round.acceptance, by_round.lengths, pairs.predicted, by_gamma.tau_alpha):
    assert isinstance(make(found), figures.Omitted)
  assert math.isnan(found[0].alpha.value)
