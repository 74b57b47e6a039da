"""The joint law of three tokens that come out of several rounds of the whole decoder.

n = 200 000 texts from 64 possible ones; the statistic is Pearson's chi-square with 63 degrees of
freedom, the fixed bar its quantile at a false-alarm rate of 1e-6, and seeds are fixed. Every mutant
must exceed the bar.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from specjax import decode, drafters, logits, verify
from specjax.models import table
from specjax.types import Decision, method
from specjax.verify import rule as rule_lib
from tests.decode import toys

SAMPLES, CHUNK, TOKENS = 200_000, 20_000, 3
BAR = scipy.stats.chi2.isf(1e-6, toys.VOCAB**TOKENS - 1)
TARGET = toys.random_table(0, order=2)
DRAFT = toys.random_table(1, order=1)
PROMPT = np.array([1, 2, 3])


def chi_square(decoder):
  """Pearson's statistic of the decoder's texts against the target's joint law."""
  prompts = np.tile(PROMPT, (CHUNK, 1))
  seen = np.zeros((toys.VOCAB,) * TOKENS)
  for chunk in range(SAMPLES // CHUNK):
    rows = np.arange(CHUNK) + chunk * CHUNK
    texts = decode.generate(
        decoder, jax.random.key(7), None, prompts, np.full(CHUNK, len(PROMPT)), TOKENS, rows=rows)
    np.add.at(seen, tuple(np.asarray(texts.tokens).T), 1)
  expected = SAMPLES * joint_law(decoder.transform)
  return ((seen - expected) ** 2 / expected).sum()


def joint_law(transform):
  step = np.exp(np.asarray(logits.log_law(TARGET, transform), np.float64))
  a, b = PROMPT[-2:]
  return step[a, b][:, None, None] * step[b][:, :, None] * step


def decoder_of(rule, drafter=None, transform=logits.temperature(0.9)):
  drafter = drafter or table.drafter(DRAFT, 2)
  return decode.speculative(table.target(TARGET), drafter, rule, transform)


@pytest.mark.parametrize("rule", [verify.token(), verify.match()], ids=["token", "match"])
def test_rules_keep_the_joint_law(rule):
  assert chi_square(decoder_of(rule)) < BAR


@pytest.mark.parametrize("drafter", [
    drafters.ngram(3, shortest=1),
    drafters.second_model(table.target(DRAFT), 3),
], ids=["ngram", "autoregressive"])
def test_drafters_keep_the_joint_law(drafter):
  assert chi_square(decoder_of(verify.token(), drafter)) < BAR


def test_trees_keep_the_joint_law():
  decoder = decoder_of(verify.match(), toys.pairs_drafter(DRAFT), logits.chain())
  assert chi_square(decoder) < BAR


def test_plain_decoding_keeps_the_joint_law():
  plain = decode.autoregressive(table.target(TARGET), logits.temperature(0.9))
  assert chi_square(plain) < BAR


@method
class SharedCoin(rule_lib.Rule):
  """Mutant: one coin for all positions of a draft."""

  def verify(self, key, draft, log_p, depth=None):
    decision = self.decide(draft, log_p)
    coin_key, extra_key = jax.random.split(key)
    heads = jax.random.uniform(coin_key, ()) < decision.accept
    stop = rule_lib.walk.last_top_down(draft.parents, heads)
    extra = logits.sample(extra_key, decision.log_next[stop + 1])
    return rule_lib.verdict(draft, stop, extra, depth)


@method
class StaleCoins(rule_lib.Rule):
  """Mutant: every round flips the coins of the first one."""

  def verify(self, key, draft, log_p, depth=None):
    del key
    return super(StaleCoins, self).verify(jax.random.key(3), draft, log_p, depth)


def bonus_from_draft(draft, log_p):
  """Mutant: the bonus token is drawn from the drafter's last law."""
  decision = verify.token().decide(draft, log_p)
  return Decision(decision.accept, decision.log_next.at[-1].set(draft.log_q[-1]))


def over_acceptance(draft, log_p):
  """Mutant: accepts five percent too often."""
  decision = verify.token().decide(draft, log_p)
  return Decision(jnp.minimum(decision.accept * 1.05, 1), decision.log_next)


def residual_of_target(draft, log_p):
  """Mutant: after a rejection draws from p instead of the residual."""
  return Decision(verify.token().decide(draft, log_p).accept, log_p)


def mutant(formula, kind=rule_lib.Rule):
  return kind(jax.tree_util.Partial(formula), lossless=True, coupled=False, serves=rule_lib.CHAINS,
              bottom_up=False)


@pytest.mark.parametrize("rule", [
    mutant(verify.token().formula.func, SharedCoin),
    mutant(verify.token().formula.func, StaleCoins),
    mutant(bonus_from_draft), mutant(over_acceptance), mutant(residual_of_target),
], ids=["shared coin", "stale coins", "bonus from q", "over-acceptance", "residual from p"])
def test_mutants_are_caught(rule):
  assert chi_square(decoder_of(rule)) > BAR
