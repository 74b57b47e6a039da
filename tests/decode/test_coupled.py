"""Coupled decoding: the text of plain decoding, the closed form of acceptance, and its mutants.

Sampled statistics: Pearson's chi-square over the 64 texts of three tokens at a false-alarm rate of
1e-6 (as in test_joint), and a normal bound of 5 standard errors (6e-7) on acceptance.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import decode, drafters, keys, logits, verify
from specjax.models import table, transformer
from specjax.types import method, Params
from specjax.verify import rule as rule_lib
from tests.decode import test_joint, toys

KEY = jax.random.key(5)
PROMPTS, LENGTHS = np.array([[1, 2, 3], [2, 1, 0], [3, 0, 0]]), np.array([3, 2, 1])
TARGET = table.target(toys.random_table(0, order=2))
DRAFT = toys.random_table(1, order=1)


def text(decoder, key=KEY, rows=np.arange(3), params=None, tokens=30):
  return np.asarray(decode.generate(
      decoder, key, params, PROMPTS[rows], LENGTHS[rows], tokens, rows=rows).tokens)


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.3])
@pytest.mark.parametrize("drafter", [
    table.drafter(DRAFT, 1), table.drafter(DRAFT, 4), drafters.ngram(3, shortest=1),
    drafters.second_model(TARGET, 2), toys.pairs_drafter(DRAFT)],
    ids=["gamma 1", "gamma 4", "ngram", "autoregressive", "tree"])
def test_the_text_is_that_of_plain_decoding(drafter, temperature):
  transform = logits.chain(logits.temperature(temperature), logits.top_k(3), logits.top_p(0.95))
  plain = text(decode.autoregressive(TARGET, transform))
  np.testing.assert_array_equal(
      text(decode.speculative(TARGET, drafter, verify.gumbel(), transform)), plain)


def test_list_gumbel_over_one_path_is_gumbel():
  warm = logits.temperature(0.9)
  plain = text(decode.autoregressive(TARGET, warm))
  for drafter in (table.drafter(DRAFT, 3), drafters.ngram(3, shortest=1)):
    run = lambda rule: decode.generate(
        decode.speculative(TARGET, drafter, rule, warm), KEY, None, PROMPTS, LENGTHS, 30)
    listed, single = run(verify.list_gumbel()), run(verify.gumbel())
    np.testing.assert_array_equal(listed.tokens, plain)
    np.testing.assert_array_equal(listed.stats.accepted, single.stats.accepted)


def test_the_text_follows_the_seed_and_the_row_not_the_batch():
  decoder = decode.speculative(
      TARGET, table.drafter(DRAFT, 3), verify.gumbel(), logits.temperature(1.0))
  together = text(decoder)
  np.testing.assert_array_equal(text(decoder, rows=np.array([2, 0])), together[[2, 0]])
  assert (text(decoder, key=jax.random.key(6)) != together).any()


def test_a_transformer_in_strict_mode():
  target = transformer.target(toys.TINY)
  warm = logits.temperature(0.8)
  params = Params(toys.tiny_params(1), toys.tiny_params(2))
  plain = text(decode.autoregressive(target, warm, strict=True), params=params)
  for drafter in (drafters.ngram(7, shortest=1), drafters.second_model(target, 3),
                  drafters.layer_skip(transformer.early_exit(toys.TINY, 1), 5)):
    decoder = decode.speculative(target, drafter, verify.gumbel(), warm, strict=True)
    np.testing.assert_array_equal(text(decoder, params=params), plain)


@method
class KeyedByRound(decode.Decoder):
  """Mutant: fresh noise in every round, as if positions did not matter."""

  def _keys(self, key, state):
    field = keys.positions(
        key, state.rows, jnp.broadcast_to(state.round * 100, state.lengths.shape),
        self.drafter.depth + 1)
    return field[:, :-1], field


@method
class KeyedByDraftIndex(decode.Decoder):
  """Mutant: the noise of a token depends on its place in the draft alone."""

  def _keys(self, key, state):
    field = keys.positions(key, state.rows, 0 * state.lengths, self.drafter.depth + 1)
    return field[:, :-1], field


@method
class KeyedBySlot(decode.Decoder):
  """Mutant: the noise of a row depends on its slot in the batch instead of its id."""

  def _keys(self, key, state):
    slots = jnp.arange(state.rows.shape[0])
    field = keys.positions(key, slots, state.lengths, self.drafter.depth + 1)
    return field[:, :-1], field


@method
class KeysOfPositions(decode.Decoder):
  """Mutant, with CoinsOfPositions: a rule that flips coins is handed the keys of positions."""

  def _keys(self, key, state):
    return (keys.draft(key, state.rows, state.round, self.drafter.depth),
            keys.positions(key, state.rows, state.lengths, self.drafter.depth + 1))


@method
class CoinsOfPositions(rule_lib.Rule):
  """Mutant: the coin of a drafted token is that of its absolute position, in whatever round."""

  def verify(self, key, draft, log_p, depth=None):
    decision = self.decide(draft, log_p)
    coins, extras = jax.vmap(jax.random.split, out_axes=1)(key)
    heads = jax.vmap(jax.random.uniform)(coins[:-1]) < decision.accept
    walk = rule_lib.walk.first_bottom_up if self.bottom_up else rule_lib.walk.last_top_down
    stop = walk(draft.parents, heads)
    extra = logits.sample(extras[stop + 1], decision.log_next[stop + 1])
    return rule_lib.verdict(draft, stop, extra, depth)


def mutated(kind, rule=verify.gumbel(), gamma=3, transform=logits.temperature(1.0)):
  right = decode.speculative(TARGET, table.drafter(DRAFT, gamma), rule, transform)
  return kind(right.target, right.drafter, right.rule, right.transform, right.window)


@pytest.mark.parametrize("kind", [KeyedByRound, KeyedByDraftIndex])
def test_wrongly_keyed_noise_is_caught_by_the_text(kind):
  plain = text(decode.autoregressive(TARGET, logits.temperature(1.0)))
  assert (text(mutated(kind)) != plain).any()


def test_noise_keyed_by_slot_is_caught_by_turning_the_batch():
  together = text(mutated(KeyedBySlot))
  assert (text(mutated(KeyedBySlot), rows=np.array([2, 0])) != together[[2, 0]]).any()


def test_acceptance_is_the_closed_form():
  """Context-free pairs: sum_j 1 / sum_i max(p_i / p_j, q_i / q_j) (Daliri et al. 2024)."""
  rng = np.random.default_rng(4)
  prompts, lengths = np.ones((4000, 1), int), np.ones(4000, int)
  for p, q in rng.dirichlet(np.ones(5), (3, 2)):
    decoder = decode.speculative(
        table.target(jnp.log(jnp.asarray(p, jnp.float32))),
        table.drafter(jnp.log(jnp.asarray(q, jnp.float32)), 2), verify.gumbel(), logits.chain())
    stats = decode.generate(decoder, KEY, None, prompts, lengths, 40).stats
    n, accepted = int(stats.tested.sum()), int(stats.accepted.sum())
    expected = (1 / np.maximum(p[:, None] / p[None], q[:, None] / q[None]).sum(0)).sum()
    assert abs(accepted / n - expected) < 5 * (expected * (1 - expected) / n)**0.5


@pytest.mark.parametrize("rule", [verify.gumbel(), verify.block()], ids=["gumbel", "block"])
def test_the_joint_law_is_the_targets(rule):
  """200 000 texts here; a million of them with --full."""
  assert test_joint.chi_square(test_joint.decoder_of(rule)) < test_joint.BAR


@pytest.mark.parametrize("rule", [
    pytest.param(verify.list_gumbel(), id="list_gumbel"),
    pytest.param(verify.recursive(), id="recursive", marks=pytest.mark.full),
    pytest.param(verify.traversal(), id="traversal", marks=pytest.mark.full)])
def test_several_paths_keep_the_joint_law_and_help(rule):
  """Two independent paths of two tokens: the target's joint law, and fewer rounds than with one."""
  decoders = [test_joint.decoder_of(rule, toys.paths_drafter(DRAFT, paths, 2), logits.chain())
              for paths in (1, 2)]
  assert test_joint.chi_square(decoders[1]) < test_joint.BAR
  rounds = [int(decode.generate(d, KEY, None, np.ones((200, 1), int), np.ones(200, int), 60)
                .stats.rounds.sum()) for d in decoders]
  assert rounds[1] < 0.97 * rounds[0]


@pytest.mark.full
def test_the_joint_law_is_the_targets_in_a_million_texts(monkeypatch):
  monkeypatch.setattr(test_joint, "SAMPLES", 1_000_000)
  assert test_joint.chi_square(test_joint.decoder_of(verify.gumbel())) < test_joint.BAR


def test_noise_keyed_by_draft_index_breaks_the_joint_law():
  assert test_joint.chi_square(
      mutated(KeyedByDraftIndex, transform=logits.temperature(0.9))) > test_joint.BAR


def test_coins_keyed_by_position_bias_block_verification():
  """A rejected block has looked at the coins of its later positions, which then come again."""
  rule = verify.block()
  coins = CoinsOfPositions(
      rule.formula, lossless=True, coupled=False, serves=verify.CHAINS, bottom_up=rule.bottom_up)
  biased = mutated(KeysOfPositions, coins, transform=logits.temperature(0.9))
  assert test_joint.chi_square(biased) > test_joint.BAR
