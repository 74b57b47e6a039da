"""Rules for some rows: whatever the directions of the two walks, every row keeps its own law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import verify
from specjax.exact import certify, drafts, systems
from specjax.types import WITHOUT_REPLACEMENT
from tests.verify import toys

PAIRS = (
    ("token", "match", "chain"),
    ("token", "block", "chain"),
    ("block", "greedy", "chain"),
    ("recursive", "typical", "one law"),
    ("match", "traversal", "one law"),
    ("traversal", "specinfer", "one law"),
)


@pytest.mark.parametrize("first, second, kind", PAIRS)
def test_each_side_keeps_the_law_of_its_rule(first, second, kind):
  rules = getattr(verify, first)(), getattr(verify, second)()
  cases = toys.random_cases(0, 40, 5, 3, kind)
  for mask, rule in zip((True, False), rules):
    got, expected = (toys.laws_of(one, cases) for one in (verify.where(mask, *rules), rule))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_a_mask_over_the_batch_is_mapped_like_any_number_of_a_rule():
  cases = toys.random_cases(1, 6, 5, 3, "chain")
  mask = np.array([True, False, False, True, True, False])
  axes = jax.tree.map(
      lambda number: 0 if jnp.ndim(number) else None,
      verify.where(mask, verify.token(), verify.block()))
  decide = jax.jit(lambda rule, *rows: jax.vmap(
      lambda rule, *row: rule.decide(*row).accept, (axes, 0, 0))(rule, *rows))
  with jax.enable_x64(True):
    rows = toys.stack(cases)
    got, all_token, all_block = (decide(verify.where(one, verify.token(), verify.block()), *rows)
                                 for one in (mask, mask | True, mask & False))
  np.testing.assert_array_equal(got, np.where(mask[:, None], all_token, all_block))
  assert (np.asarray(all_token) != np.asarray(all_block)).any()


def test_rules_of_rules_of_rules():
  inner = verify.where(False, verify.greedy(), verify.block())
  rule = verify.where(False, verify.token(), verify.lenient(1., inner))
  cases = toys.random_cases(2, 30, 5, 3, "chain")
  np.testing.assert_allclose(
      toys.laws_of(rule, cases), toys.laws_of(verify.block(), cases), rtol=0, atol=1e-12)


def test_the_flags():
  token, block, match, greedy = verify.token(), verify.block(), verify.match(), verify.greedy()
  assert verify.where(True, token, block).lossless
  assert not verify.where(True, token, greedy).lossless
  assert not verify.where(True, token, match).trees
  assert verify.where(True, verify.recursive(), match).trees
  assert verify.where(True, token, block).bottom_up
  assert not verify.where(True, token, match).bottom_up
  coupled = verify.where(True, verify.gumbel(), verify.list_gumbel())
  assert coupled.coupled and coupled.decide is None


def test_losslessness_of_a_mixture_is_certified():
  for mask in (True, False):
    rule = verify.where(mask, verify.recursive(), verify.traversal())
    scheme = drafts.tree((2, 1), WITHOUT_REPLACEMENT)
    assert certify(rule, [scheme], systems.random(0, 12, 3, 2)).max_tv < 1e-12


def test_a_coupled_rule_beside_one_with_coins_is_refused():
  for pair in ((verify.gumbel(), verify.token()), (verify.token(), verify.list_gumbel())):
    with pytest.raises(ValueError, match="cannot mix a coupled rule"):
      verify.where(True, *pair)


def test_a_mask_of_numbers_is_refused():
  with pytest.raises(ValueError, match="takes a mask bool"):
    verify.where(1., verify.token(), verify.block())


@pytest.mark.parametrize("mask", (True, False))
def test_the_verdict_is_the_inner_one_for_the_same_key(mask):
  """The key is handed on whole, never split or reused: same direction, same coins."""
  case = toys.random_cases(3, 1, 5, 3, "chain")[0]
  draft = case.draft._replace(log_q=case.draft.log_q.astype(jnp.float32))
  log_p = case.log_p.astype(jnp.float32)
  pairs = (verify.token(), verify.match()), (verify.gumbel(), verify.list_gumbel())
  for pair in pairs:
    rule = verify.where(mask, *pair)
    key = jax.random.key(7)
    key = jax.random.split(key, 6) if rule.coupled else key
    run = jax.jit(lambda rule, *args: rule.verify(*args))
    got = run(rule, key, draft, log_p)
    expected = run(pair[0 if mask else 1], key, draft, log_p)
    jax.tree.map(np.testing.assert_array_equal, got, expected)


def test_a_change_of_the_mask_compiles_nothing():
  drafts_, log_p = toys.stack(toys.random_cases(4, 4, 5, 3, "chain"))
  run = jax.jit(lambda rule, draft, log_p: jax.vmap(rule.decide)(draft, log_p).accept)
  for mask in (True, False):
    run(verify.where(mask, verify.token(), verify.block()), drafts_, log_p)
  assert run._cache_size() == 1
