"""Certificates of all rules: the law on random and degenerate systems, E[tau] against fractions."""

import dataclasses
from fractions import Fraction as F

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from specjax import verify
from specjax.exact import certify, drafts, rounds, schemes, systems
from specjax.types import Decision, DETERMINISTIC, WITHOUT_REPLACEMENT

_LOSSLESS = ("token", "block", "match", "kseq", "specinfer", "recursive", "traversal",
             "multipath_block")
_PATHS = drafts.paths(2, 2)
_JOINED = drafts.paths(2, 2, drafts.JOINED)
_MERGED = drafts.paths(2, 2, drafts.MERGED)
_2x1 = drafts.tree((2, 1), WITHOUT_REPLACEMENT)
_2x2 = drafts.tree((2, 2), WITHOUT_REPLACEMENT)


def _efficient(rule, scheme, name):
  """Tables of three levels throughout, so that few programs have to be compiled."""
  return certify(rule, [scheme], systems.pair(name, 3, 3)).cases[0].at(name)


def _where(found):
  return [(case.scheme.name, case.max_tv, case.worst) for case in found.cases]


@pytest.mark.parametrize("name", _LOSSLESS)
def test_lossless_rules_keep_the_law(name):
  """30 random systems, all degenerate ones, most of the served ways of drafting 3 or 4 nodes."""
  rule = getattr(verify, name)()
  ways = [scheme for scheme in schemes.served(rule) if len(scheme.parents) in (3, 4)
          and (scheme.siblings != DETERMINISTIC or name in ("match", "block"))]
  found = certify(rule, ways, number=30)
  assert rule.lossless and found.how == "enumerated"
  assert found.max_tv <= 1e-12, _where(found)
  for case in found.cases:
    assert (case.accepted <= case.optimum + 1e-12).all(), case.scheme.name
    assert (case.accepted >= 0).all()


@pytest.mark.full
@pytest.mark.parametrize("name", _LOSSLESS)
@pytest.mark.parametrize("seed", [1, 2])
def test_lossless_rules_keep_the_law_on_many_systems(name, seed):
  """250 random systems and every way of drafting that the rule serves."""
  found = certify(getattr(verify, name)(), number=250, seed=seed)
  assert found.max_tv <= 1e-12, _where(found)


@pytest.mark.full
@pytest.mark.parametrize("name", ["token", "block", "match", "recursive", "traversal", "kseq"])
def test_five_tokens_and_drafts_of_four(name):
  rule = getattr(verify, name)()
  ways = [drafts.chain(4)] + ([drafts.paths(4, 1)] if rule.trees else [])
  assert certify(rule, ways, vocab=5, number=200).max_tv <= 1e-12


@pytest.mark.parametrize("name,scheme,pairs", [
    ("token", drafts.chain(2), dict(AB=F(10, 9), P3=F(119, 100), S3=F(3, 4))),
    ("token", drafts.chain(3), dict(AB=F(38, 27), P3=F(1533, 1000), S3=F(7, 8))),
    ("block", drafts.chain(2), dict(AB=F(11, 9), P3=F(5, 4), S3=F(17, 20))),
    ("block", drafts.chain(3), dict(AB=F(5, 3), P3=F(213, 125), S3=F(109, 100))),
    ("match", drafts.chain(2), dict(AB=F(52, 81), P3=F(4389, 10000))),
    ("match", _MERGED, dict(AB=F(82, 81))),
    ("match", drafts.paths(2, 1), dict(AB=F(2, 3), P3=F(513, 1000), R3=F(483, 1000))),
    ("kseq", drafts.paths(2, 1), dict(P3=F(84, 100))),
    ("recursive", drafts.paths(2, 1), dict(AB=F(7, 9), P3=F(41, 50), R3=F(76, 100))),
    ("specinfer", drafts.paths(2, 1), dict(AB=F(7, 9), P3=F(41, 50), R3=F(76, 100))),
    ("recursive", drafts.tree((2,), WITHOUT_REPLACEMENT),
     dict(AB=1, P3=F(7, 8), R3=F(82, 100))),
    ("recursive", _2x1, dict(AB=F(5, 3), P3=F(119, 80), S3=F(711, 700))),
    ("recursive", _2x2, dict(AB=2, P3=F(105, 64), S3=F(139119, 122500))),
    ("recursive", _JOINED, dict(AB=F(4, 3), P3=F(14276, 10000))),
    ("traversal", _2x1, dict(AB=F(16, 9), P3=F(157, 100), S3=F(781, 700))),
    ("traversal", _2x2, dict(AB=2, P3=F(541, 320), S3=F(37746, 30625))),
    ("traversal", _PATHS, dict(AB=F(38, 27), P3=F(727, 500), S3=1)),
    ("traversal", _MERGED, dict(AB=F(115, 81), P3=F(613, 440), S3=F(1210537, 1190000))),
    ("multipath_block", _PATHS, dict(AB=F(131, 81), P3=F(16254, 10000), S3=F(10949, 10000))),
], ids=lambda value: getattr(value, "name", value) if not isinstance(value, dict) else "")
def test_accepted_tokens_as_fractions(name, scheme, pairs):
  rule = getattr(verify, name)()
  for pair, value in pairs.items():
    assert _efficient(rule, scheme, pair) == pytest.approx(float(value), abs=1e-12)


@pytest.mark.parametrize("pair,paths,value", [
    ("AB", 2, .811420), ("AB", 3, .896576), ("R3", 2, .791355)])
def test_kseq_against_printed_decimals(pair, paths, value):
  assert _efficient(verify.kseq(), drafts.paths(paths, 1), pair) == pytest.approx(value, abs=1e-6)


def test_more_paths_can_accept_less():
  """More paths help on AB and P3, and harm where the drafter is perfect."""
  perfect = systems.context_free("perfect", (.5, .5, 0), (.5, .5, 0), 3)
  made = systems.concatenate(perfect, systems.pair("AB", 3, 3), systems.pair("P3", 3, 3))
  expected = {1: (1, 2 / 3, .7), 2: (3 / 4, 8 / 9, .89), 3: (5 / 8, 26 / 27, None)}
  for paths, values in expected.items():
    case, = certify(verify.multipath_block(), [drafts.paths(paths, 1)], made).cases
    for system, value in zip(("perfect", "AB", "P3"), values):
      assert value is None or case.at(system) == pytest.approx(value, abs=1e-12)


@pytest.mark.full
def test_three_paths_of_two():
  assert _efficient(verify.multipath_block(), drafts.paths(3, 2), "AB") == pytest.approx(
      1289 / 729, abs=1e-12)


def test_drafts_that_cover_the_target():
  """Sequoia's example, p = (1, 0) and q = (1/2, 1/2): two drafts suffice if they are distinct."""
  made = systems.context_free("cover", (1, 0, 0), (.5, .5, 0), 3)
  accepts = lambda rule, scheme: certify(rule, [scheme], made).cases[0].at("cover")
  two = drafts.paths(2, 1)
  assert accepts(verify.recursive(), two) == pytest.approx(3 / 4, abs=1e-14)
  assert accepts(verify.kseq(), two) == pytest.approx(3 / 4, abs=1e-14)
  assert accepts(verify.recursive(), drafts.tree((2,), WITHOUT_REPLACEMENT)) == 1


@pytest.mark.parametrize("rule,laws,tv", [
    (verify.typical(), systems.PAIRS["P3"], .3),
    (verify.typical(), ((.9, .06, .04), (.5, .3, .2)), .1),
    (verify.lenient(.8), systems.PAIRS["P3"], .075),
    (verify.greedy(), systems.PAIRS["P3"], .6),
], ids=["typical", "typical, greedy fallback", "lenient", "greedy"])
def test_lossy_rules_report_their_distance(rule, laws, tv):
  """Of the first token, which the round decides alone."""
  scheme = drafts.chain(1)
  with_p = systems.context_free("laws", *laws, 1)
  assert not rule.lossless
  assert _first_token_tv(rule, scheme, with_p) == pytest.approx(tv, abs=1e-12)


def _first_token_tv(rule, scheme, made):
  with jax.enable_x64(True):
    log_p, log_q = jnp.asarray(made.log_p[0]), jnp.asarray(made.log_q[0])
    round_ = jax.jit(lambda p, q: rounds.one_round(rule, drafts.enumerate_drafts(scheme, q), p))
    text = rounds.text_law(round_(log_p, log_q), log_p)
    first = np.asarray(text).reshape(3, -1).sum(1)
  return np.abs(first - np.exp(made.log_p[0, 0])).sum() / 2


def _at_temperature_zero():
  made = systems.degenerate(3, 3)
  rows = [made.names.index(name) for name in ("one-hot target", "equal one-hot")]
  return systems.Systems(("hot", "hot equal"), made.log_p[rows], made.log_q[rows])


@pytest.mark.parametrize("scheme,names", [
    (drafts.chain(3), _LOSSLESS), (_2x1, ("match", "recursive", "traversal"))],
    ids=lambda value: getattr(value, "name", ""))
def test_at_temperature_zero_all_rules_are_greedy(scheme, names):
  """The same E[tau], and greedy verification is lossless too."""
  greedy = certify(verify.greedy(), [scheme], _at_temperature_zero())
  assert greedy.lossless
  for name in names:
    found = certify(getattr(verify, name)(), [scheme], _at_temperature_zero())
    np.testing.assert_allclose(found.cases[0].accepted, greedy.cases[0].accepted, atol=1e-12)


def test_a_rule_made_of_rules_serves_what_all_of_them_serve():
  trees = verify.where(jnp.bool_(True), verify.kseq(), verify.specinfer())
  assert set(schemes.served(trees)) == set(schemes.served(verify.kseq()))
  mixed, chains = verify.where(jnp.bool_(True), verify.block(), verify.token()), verify.token()
  assert schemes.served(mixed) == schemes.served(verify.lenient(.5)) == schemes.served(chains)
  assert certify(mixed, [drafts.chain(3)], number=4).lossless


@pytest.mark.parametrize("name", _LOSSLESS + ("greedy", "typical", "gumbel", "list_gumbel"))
def test_ways_of_drafting_begin_with_a_chain_of_three(name):
  first, *_ = schemes.served(getattr(verify, name)())
  assert first.parents == drafts.chain(3).parents and all(first.drafted)


def test_a_rule_of_ones_own_needs_no_registration():
  accept_nothing = verify.Rule(
      Partial(lambda draft, log_p: Decision(jnp.zeros_like(log_p[1:, 0]), log_p)),
      lossless=True, coupled=False, serves=verify.CHAINS, bottom_up=False)
  found = certify(accept_nothing, number=3)
  assert found.lossless and found.block_efficiency == 1
  assert [case.scheme for case in found.cases] == list(schemes.served(verify.token()))


def test_the_certificate_names_the_worst_system():
  stale = dataclasses.replace(verify.token(), formula=Partial(
      lambda draft, log_p: Decision(jnp.ones_like(log_p[1:, 0]), log_p)))  # accepts everything
  equal = systems.context_free("p = q", (1, 0, 0), (1, 0, 0), 1)
  made = systems.concatenate(systems.pair("P3", 1), systems.pair("S3", 1), equal)
  found = certify(stale, [drafts.chain(1)], made)
  case, = found.cases
  assert case.worst == "S3" and found.max_tv == pytest.approx(.5)
  np.testing.assert_allclose(case.tv, [.3, .5, 0], atol=1e-15)


def test_too_shallow_systems_are_refused():
  with pytest.raises(ValueError, match="chain 3 reads laws after up to 3 tokens.*4 rows"):
    certify(verify.token(), [drafts.chain(3)], systems.pair("P3", 1))


@pytest.mark.parametrize("arguments, message", [
    (dict(vocab=1), "vocab >= 2"), (dict(number=0), "number >= 1"),
    (dict(schemes=()), "at least one way of drafting")])
def test_nothing_to_certify_is_refused(arguments, message):
  with pytest.raises(ValueError, match=message):
    certify(verify.token(), **arguments)
