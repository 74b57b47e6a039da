"""Walks and their record, against the same told in plain Python, over random trees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import verify
from specjax.trees import order
from specjax.types import Draft, PAD, ROOT
from specjax.verify import rule as rule_lib, walk
from tests.verify import toys

NODES = 7
TREES = [toys.tree(np.random.default_rng(seed), NODES) for seed in range(40)]
PARENTS = jnp.asarray(np.stack(TREES))
HEADS = np.random.default_rng(1).random((len(TREES), NODES)) < .6
ACCEPT = np.random.default_rng(2).random((len(TREES), NODES)) * (
    np.random.default_rng(3).random((len(TREES), NODES)) < .8)


def children(parents, node):
  return [n for n, parent in enumerate(parents) if parent == node]


def path(parents, node):
  return [] if node == ROOT else path(parents, parents[node]) + [node]


def in_post_order(parents, node=ROOT):
  below = [n for child in children(parents, node) for n in in_post_order(parents, child)]
  return below if node == ROOT else below + [node]


def walk_down(parents, heads):
  at = ROOT
  while True:
    accepted = [child for child in children(parents, at) if heads[child]]
    if not accepted:
      return at
    at = accepted[0]


def walk_up(parents, heads):
  return next((node for node in in_post_order(parents) if heads[node]), ROOT)


def test_where_a_walk_stops():
  down = jax.vmap(walk.last_top_down)(PARENTS, jnp.asarray(HEADS))
  up = jax.vmap(walk.first_bottom_up)(PARENTS, jnp.asarray(HEADS))
  np.testing.assert_array_equal(down, [walk_down(*row) for row in zip(TREES, HEADS)])
  np.testing.assert_array_equal(up, [walk_up(*row) for row in zip(TREES, HEADS)])
  assert len(set(np.asarray(down))) > 4 and len(set(np.asarray(up))) > 4


def test_with_what_probability_it_stops():
  """Summed over all 2^7 outcomes of the coins."""
  coins = np.array(np.meshgrid(*[[False, True]] * NODES)).reshape(NODES, -1).T
  with jax.enable_x64(True):
    accept = jnp.asarray(ACCEPT)
    for stops, stop_of in ((walk.stops_top_down, walk_down), (walk.stops_bottom_up, walk_up)):
      got = np.asarray(jax.jit(jax.vmap(stops))(PARENTS, accept))
      for parents, chances, row in list(zip(TREES, ACCEPT, got))[:8]:
        expected = np.zeros(NODES + 1)
        for heads in coins:
          expected[stop_of(parents, heads) + 1] += np.where(heads, chances, 1 - chances).prod()
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-14)


def test_paths_and_siblings():
  nodes = np.arange(-1, NODES, dtype=np.int32)
  got = jax.jit(jax.vmap(lambda parents: jax.vmap(
      lambda node: order.path_to(parents, node, NODES))(nodes)))(PARENTS)
  for parents, rows in zip(TREES, got):
    for node, row in zip(nodes, rows):
      expected = path(parents, node)
      np.testing.assert_array_equal(row, expected + [PAD] * (NODES - len(expected)))
  ranks = jax.vmap(order.sibling_ranks)(PARENTS)
  for parents, row in zip(TREES, ranks):
    np.testing.assert_array_equal(
        row, [children(parents, parent).index(node) for node, parent in enumerate(parents)])


@pytest.mark.parametrize("depth", (NODES, NODES + 2))
def test_the_record_of_a_walk(depth):
  rng = np.random.default_rng(4)
  valid = np.array([[True] * NODES] * len(TREES))
  for row, parents in zip(valid, TREES):
    for node, parent in enumerate(parents):
      row[node] = rng.random() < .8 and (parent == ROOT or row[parent])
  stops = [walk_down(parents, heads & ok) for parents, heads, ok in zip(TREES, HEADS, valid)]
  tokens = rng.integers(0, 9, (len(TREES), NODES)).astype(np.int32)
  draft = Draft(jnp.asarray(tokens), PARENTS, None, jnp.asarray(valid))
  got = jax.jit(jax.vmap(lambda draft, stop: rule_lib.verdict(draft, stop, jnp.int32(77), depth)))(
      draft, jnp.asarray(stops, jnp.int32))
  for i, (parents, stop) in enumerate(zip(TREES, stops)):
    kept = path(parents, stop)
    assert got.count[i] == len(kept) + 1
    np.testing.assert_array_equal(
        got.tokens[i], list(tokens[i, kept]) + [77] + [PAD] * (depth - len(kept)))
    np.testing.assert_array_equal(got.path[i], kept + [PAD] * (depth - len(kept)))
    np.testing.assert_array_equal(got.accepted[i], np.isin(np.arange(NODES), kept))
    tested = [valid[i, n] and set(path(parents, parents[n])) <= set(kept) and not any(
        m in kept for m in children(parents, parents[n]) if m < n) for n in range(NODES)]
    np.testing.assert_array_equal(got.tested[i], tested)
  assert got.tokens.dtype == got.path.dtype == got.count.dtype == jnp.int32


RULES = ("token", "block", "greedy", "match", "typical", "kseq", "specinfer", "recursive",
         "traversal", "multipath_block", "gumbel", "list_gumbel")


@pytest.mark.parametrize("name", RULES)
def test_an_empty_draft_emits_one_token(name):
  """Plain decoding is the round that drafts nothing."""
  rule = getattr(verify, name)()
  nothing = Draft(
      jnp.zeros(0, jnp.int32), jnp.zeros(0, jnp.int32), jnp.zeros((0, 4)), jnp.zeros(0, bool))
  log_p = jnp.log(jnp.array([[0, 1., 0, 0]]))
  key = jax.random.split(jax.random.key(0), 1) if rule.coupled else jax.random.key(0)
  verdict = jax.jit(rule.verify)(key, nothing, log_p)
  assert verdict.count == 1 and list(verdict.tokens) == [1] and verdict.path.shape == (0,)


@pytest.mark.parametrize("name", ("token", "block", "match", "kseq", "recursive", "traversal"))
def test_a_nan_row_gives_no_token(name):
  rule = getattr(verify, name)()
  draft = Draft(jnp.array([1], jnp.int32), jnp.array([-1], jnp.int32), None, jnp.ones(1, bool))
  log_p = jnp.full((2, 4), jnp.nan)
  verdict = jax.jit(rule.verify)(jax.random.key(0), draft, log_p)
  assert verdict.tokens[verdict.count - 1] == PAD
