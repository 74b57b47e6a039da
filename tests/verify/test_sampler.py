"""The compiled sampler has the law that the exact sum gives.

`verify` runs under jit and vmap over many keys with one draft; the pair (stop row, extra token) is
counted and compared with `exact.law` by a G-test. Cells of probability 0 must stay empty (for kseq,
see ROUNDED); cells that expect fewer than 10 are pooled.

False alarms: `ALPHA` is the level of the whole file for fresh seeds, divided by the number of
G-tests in it (Bonferroni). The seeds are fixed, so a failure is a change of the code.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from specjax import verify
from specjax.logits import chain, log_law
from specjax.types import Draft
from specjax.verify import rule as rule_lib
from tests.verify import toys

ALPHA = 1e-3
SOME, MANY, AT_ONCE = 1_000_000, 20_000_000, 50_000
VOCAB = 4

RULES = {
    "token": (verify.token(), "chain"),
    "block": (verify.block(), "chain"),
    "greedy": (verify.greedy(), "one law"),
    "match": (verify.match(), "one law"),
    "typical": (verify.typical(.15, .5), "one law"),
    "lenient": (verify.lenient(.6), "chain"),
    "kseq": (verify.kseq(), "one law"),
    "specinfer": (verify.specinfer(), "any laws"),
    "recursive": (verify.recursive(), "without replacement"),
    "traversal": (verify.traversal(), "without replacement"),
    "multipath_block": (verify.multipath_block(), "paths"),
    "where": (verify.where(True, verify.recursive(), verify.traversal()), "one law"),
}
COUPLED = {
    "gumbel": (verify.gumbel(), "one law"),
    "list_gumbel": (verify.list_gumbel(), "paths apart"),
}
# What a rule may move, of the mass 1, into cells that have none in exact arithmetic: kseq rounds
# its rho up by so much, under which law and losslessness are exact again.
ROUNDED = {"kseq": 4 * float(np.finfo(np.float32).eps)}
DRAFTS = 2
TESTS = DRAFTS * (len(RULES) + len(COUPLED))


def production(case):
  """The draft and the laws in float32."""
  narrow = lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x
  return jax.tree.map(narrow, (case.draft, case.log_p))


def some_drafts(kind):
  """Two drafts of four nodes; paths for `multipath_block`, apart for `list_gumbel`."""
  if kind not in ("paths", "paths apart"):
    return toys.random_cases(14, 2, 4, VOCAB, kind, even=True)
  rng = np.random.default_rng(11)
  p, q = toys.laws(rng, 5, VOCAB, even=True), toys.laws(rng, 2, VOCAB, even=True)
  p[3], parents = p[1], np.array([-1, 0, -1, 2], np.int32)  # equal prefixes, equal laws
  second = [1, 1, 1, 2] if kind == "paths" else [3, 0, 0, 3]
  return [toys.case(tokens, p, q[[0, 1, 0, 1]], parents) for tokens in ([0, 1, 2, 3], second)]


@functools.partial(jax.jit, static_argnames=("judge", "number"))
def count(judge, key, rule, draft, log_p, number):
  """int32[N + 1, V]: how often `judge` stops at each row with each extra token."""
  rows, vocab = log_p.shape

  def one(key):
    verdict = judge(rule, key, draft, log_p)
    stop = jnp.where(verdict.count > 1, verdict.path[verdict.count - 2], -1)
    return (stop + 1) * vocab + verdict.tokens[verdict.count - 1]

  def chunk(key):
    return jnp.bincount(jax.vmap(one)(jax.random.split(key, AT_ONCE)), length=rows * vocab)

  return jax.lax.map(chunk, jax.random.split(key, number // AT_ONCE)).sum(0).reshape(rows, vocab)


def verify_one(rule, key, draft, log_p):
  if rule.coupled:
    key = jax.random.split(key, draft.tokens.shape[0] + 1)
  return rule.verify(key, draft, log_p)


def p_value(counts, expected_law, rounded=0.):
  """Of the G-test; 0 if cells of probability 0 were hit too often, 1 if there is but one cell."""
  observed, number = counts.ravel(), counts.sum()
  expected = number * expected_law.ravel() / expected_law.sum()
  impossible = expected_law.ravel() < 1e-9
  if observed[impossible].sum() > stats.poisson.isf(ALPHA / TESTS, number * rounded):
    return 0.
  few = (expected < 10) & ~impossible
  pool = lambda x: np.append(x[~few & ~impossible], x[few].sum())
  observed, expected = pool(observed), pool(expected)
  kept = expected > 0
  if kept.sum() == 1:
    return 1.
  expected = expected[kept] * observed[kept].sum() / expected[kept].sum()
  return stats.power_divergence(observed[kept], expected, lambda_="log-likelihood").pvalue


def check(name, reference, cases, number):
  rule, _ = (RULES | COUPLED)[name]
  for seed, case in enumerate(cases):
    expected = toys.laws_of(reference, [case])[0]
    counts = np.asarray(count(verify_one, jax.random.key(seed), rule, *production(case), number))
    assert counts.sum() == number
    assert p_value(counts, expected, ROUNDED.get(name, 0.)) > ALPHA / TESTS


@pytest.mark.parametrize("name", RULES)
def test_the_sampler_has_the_exact_law(name):
  rule, kind = RULES[name]
  check(name, rule, some_drafts(kind), SOME)


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_rules_sample_and_match_a_draft_that_does_not_know_their_noise(name):
  check(name, verify.match(), some_drafts(COUPLED[name][1]), SOME)


@pytest.mark.full
@pytest.mark.parametrize("name", RULES | COUPLED)
def test_the_sampler_has_the_exact_law_at_length(name):
  rule, kind = (RULES | COUPLED)[name]
  check(name, verify.match() if rule.coupled else rule, some_drafts(kind), MANY)


# Mutants of the coin flipper; each must be rejected with the sample of the default run.


def judged_by(flip, rule, key, draft, log_p):
  stop, extra = flip(key, draft, rule.judge(draft, log_p), rule.bottom_up)
  return rule_lib.verdict(draft, stop, extra, draft.tokens.shape[0])


def _stop(draft, heads, bottom_up):
  choose = rule_lib.walk.first_bottom_up if bottom_up else rule_lib.walk.last_top_down
  return choose(draft.parents, heads & draft.valid)


def one_coin_for_all(key, draft, judgement, bottom_up):
  coin, extra = jax.random.split(key)
  heads = jax.random.uniform(coin) < judgement.accept
  stop = _stop(draft, heads, bottom_up)
  return stop, jax.random.categorical(extra, judgement.log_next(stop + 1))


def one_key_for_coins_and_extra(key, draft, judgement, bottom_up):
  """The first coin, read again as the quantile of the extra token."""
  coins = jax.random.uniform(key, judgement.accept.shape)
  stop = _stop(draft, coins < judgement.accept, bottom_up)
  law_ = jnp.cumsum(jnp.exp(judgement.log_next(stop + 1)))
  return stop, jnp.searchsorted(law_, coins[0] * law_[-1], side="right").astype(jnp.int32)


def extra_of_the_row_above(key, draft, judgement, bottom_up):
  stop, _ = rule_lib.flip(key, draft, judgement, bottom_up)
  row = jnp.where(stop < 0, 0, draft.parents[stop] + 1)
  return stop, jax.random.categorical(jax.random.fold_in(key, 9), judgement.log_next(row))


def residual_from_p(draft, log_p):
  return rule_lib.Judgement(verify.token().judge(draft, log_p).accept, lambda row: log_p[row])


@pytest.mark.parametrize("flip, name", (
    (one_coin_for_all, "token"), (one_coin_for_all, "traversal"),
    (one_key_for_coins_and_extra, "block"), (extra_of_the_row_above, "recursive")))
def test_wrong_coins_are_rejected(flip, name):
  rule, kind = RULES[name]
  worst = 1.
  for case in some_drafts(kind):
    counts = np.asarray(count(
        functools.partial(judged_by, flip), jax.random.key(0), rule, *production(case), SOME))
    worst = min(worst, p_value(counts, toys.laws_of(rule, [case])[0]))
  assert worst < ALPHA / TESTS


def test_a_residual_taken_from_p_is_rejected():
  wrong = verify.Rule(
      jax.tree_util.Partial(residual_from_p),
      lossless=True, coupled=False, serves=verify.CHAINS, bottom_up=False)
  case = some_drafts("chain")[0]
  counts = np.asarray(count(verify_one, jax.random.key(0), wrong, *production(case), SOME))
  assert p_value(counts, toys.laws_of(verify.token(), [case])[0]) < ALPHA / TESTS


# What no sample is large enough to see.


@pytest.mark.parametrize("name", ("token", "block", "recursive", "traversal", "match", "kseq"))
def test_a_coin_of_zero_does_not_accept_what_is_impossible(name, monkeypatch):
  """p(x) = 0 and u = 0: a comparison u <= a would accept."""
  p, q = np.array([0, .5, .5]), np.array([.5, .25, .25])
  draft, log_p = production(toys.case([0, 0], p, q))
  monkeypatch.setattr(jax.random, "uniform", lambda key, shape, dtype: jnp.zeros(shape, dtype))
  judged = getattr(verify, name)().judge(draft, log_p)
  stop, _ = rule_lib.flip(jax.random.key(0), draft, judged, getattr(verify, name)().bottom_up)
  assert stop == -1
  assert (jnp.zeros(2) <= judged.accept).all()  # the mutant


@pytest.mark.parametrize("name", [name for name, (rule, _) in RULES.items() if rule.lossless])
@pytest.mark.parametrize("q", ([.5, .3, 0, .2], [0, 0, 1, 0]))
def test_an_empty_residual_is_the_target_and_never_another_token(name, q):
  """p = q: every acceptance is exactly 1, and the laws that floats may still reach are p."""
  rule = RULES[name][0]
  draft, log_p = production(toys.case([int(np.argmax(q))] * 2, q, q))
  decision = jax.jit(rule.decide)(draft, log_p)
  if name != "match":  # which does not read q
    tested = decision.accept[-1:] if rule.bottom_up else decision.accept
    np.testing.assert_array_equal(tested, 1)
  laws = np.exp(np.asarray(decision.log_next))
  np.testing.assert_allclose(laws.sum(-1), 1, rtol=1e-6)
  assert (laws[:, np.array(q) == 0] == 0).all()


@pytest.fixture(scope="module")
def large():
  """Laws float32[9, V] of bfloat16 logits, and the same again row by row; V = 151936."""
  scores = (4 * jax.random.normal(jax.random.key(0), (9, 151_936))).astype(jnp.bfloat16)
  log_p = log_law(scores, chain())
  return log_p, jnp.stack([log_law(row, chain()) for row in scores[:-1]])


def drawn_from(log_q, number):
  """int32[number, N]: tokens by the quantiles of every row's law."""
  uniform = np.random.default_rng(0).random((len(log_q), number))
  mass = np.cumsum(np.exp(np.asarray(log_q, np.float64)), -1)
  tokens = [np.searchsorted(row, u * row[-1], side="right") for row, u in zip(mass, uniform)]
  return np.stack(tokens, -1).astype(np.int32)


@pytest.mark.parametrize("positions", (4_000, pytest.param(100_000, marks=pytest.mark.full)))
@pytest.mark.parametrize("name", ("token", "block", "recursive", "traversal", "kseq"))
def test_equal_laws_over_a_large_vocabulary_accept_everything(name, positions, large):
  """One law for target and drafter, whatever the shape it was computed in: nothing is rejected."""
  log_p, log_q = large
  (nodes, vocab), at_once = log_q.shape, 125
  assert log_p.dtype == jnp.float32
  rule, parents = getattr(verify, name)(), jnp.arange(-1, nodes - 1, dtype=jnp.int32)

  @jax.jit
  @functools.partial(jax.vmap, in_axes=(0, 0, None, None))
  def judge(key, tokens, log_q, log_p):
    return rule.verify(key, Draft(tokens, parents, log_q, jnp.ones(nodes, bool)), log_p)

  tokens = drawn_from(log_q, positions // nodes).reshape(-1, at_once, nodes)
  for seed, some in enumerate(tokens):
    verdict = judge(jax.random.split(jax.random.key(seed), at_once), some, log_q, log_p)
    assert (verdict.count == nodes + 1).all()
    np.testing.assert_array_equal(verdict.tokens[:, :-1], some)
    assert ((verdict.tokens[:, -1] >= 0) & (verdict.tokens[:, -1] < vocab)).all()
