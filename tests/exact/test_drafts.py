"""The enumeration of drafts against plain Python and against counts of simulated drafts."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax.exact import drafts, prefixes, systems
from specjax.types import DETERMINISTIC, INDEPENDENT, PAD, WITHOUT_REPLACEMENT

_SCHEMES = (
    drafts.chain(1),
    drafts.chain(3),
    drafts.paths(2, 2),
    drafts.paths(2, 2, drafts.MERGED),
    drafts.tree((2, 2), INDEPENDENT),
    drafts.tree((2, 2), WITHOUT_REPLACEMENT),
    drafts.tree((3,), WITHOUT_REPLACEMENT),
    drafts.tree((4,), WITHOUT_REPLACEMENT),  # more siblings than tokens
    drafts.chain(3)._replace(invalid=(1,)),
)


def _enumerate(scheme, log_q):
  with jax.enable_x64(True):
    return jax.tree.map(np.asarray, drafts.enumerate_drafts(scheme, jnp.asarray(log_q)))


def _text(made, draft, node):
  tokens = []
  while node >= 0:
    tokens.append(int(made.draft.tokens[draft, node]))
    node = made.draft.parents[draft, node]
  return tuple(reversed(tokens))


def test_shapes():
  assert drafts.chain(3).parents == (-1, 0, 1)
  assert drafts.paths(2, 2).parents == (-1, 0, -1, 2)
  assert drafts.tree((2, 2), INDEPENDENT).parents == (-1, -1, 0, 0, 1, 1)
  assert drafts.tree((2, 1), INDEPENDENT).depth == 2
  assert drafts.chain(0).depth == 0
  assert drafts.chain(3)._replace(invalid=(1,)).drafted == (True, False, False)


@pytest.mark.parametrize("scheme", _SCHEMES, ids=lambda scheme: f"{scheme.name}")
@pytest.mark.parametrize("index", range(len(systems.degenerate(3, 2).names)))
def test_weights_sum_to_one_and_recorded_rows_are_laws(scheme, index):
  log_q = systems.degenerate(3, scheme.depth).log_q[index]
  made = _enumerate(scheme, log_q)
  np.testing.assert_allclose(made.weight.sum(), 1, atol=1e-13)
  counts = (made.weight > 0)[:, None] & made.draft.valid
  np.testing.assert_allclose(np.exp(made.draft.log_q[counts]).sum(-1), 1, atol=1e-13)
  drawn = np.take_along_axis(
      made.draft.log_q[counts], made.draft.tokens[counts][:, None].astype(int), axis=-1)
  assert np.isfinite(drawn).all()  # every drafted token had a chance
  assert np.isnan(made.draft.log_q[~made.draft.valid]).all()
  assert (made.draft.tokens[~made.draft.valid] == PAD).all()


@pytest.mark.parametrize("scheme", _SCHEMES, ids=lambda scheme: f"{scheme.name}")
def test_prefixes_number_the_text_of_each_valid_node(scheme):
  made = _enumerate(scheme, systems.random(0, 1, 3, scheme.depth).log_q[0])
  for draft, node in np.argwhere(made.draft.valid):
    number = 0
    for token in _text(made, draft, node):
      number = prefixes.child(number, token, 3)
    assert made.prefixes[draft, node + 1] == number


def test_siblings_without_replacement_record_the_law_without_the_earlier_ones():
  made = _enumerate(
      drafts.tree((2,), WITHOUT_REPLACEMENT), systems.pair("P3", 1).log_q[0])
  at = [tuple(tokens) for tokens in made.draft.tokens].index((0, 2))
  np.testing.assert_allclose(
      np.exp(made.draft.log_q[at]), [[.6, .3, .1], [0, .75, .25]], atol=1e-15)
  np.testing.assert_allclose(made.weight[at], .6 * .25)
  assert all(weight == 0 for tokens, weight in zip(made.draft.tokens, made.weight)
             if tokens[0] == tokens[1])


def test_exhausted_siblings_are_invalid():
  made = _enumerate(
      drafts.tree((3,), WITHOUT_REPLACEMENT),
      systems.context_free("two", (.5, .5, 0), (.5, .5, 0), 1).log_q[0])
  real = made.weight > 0
  assert sorted(map(tuple, made.draft.tokens[real])) == [(0, 1, PAD), (1, 0, PAD)]
  assert (made.draft.valid[real] == [True, True, False]).all()


def test_merged_paths_share_their_prefix():
  made = _enumerate(drafts.paths(2, 2, drafts.MERGED), systems.pair("P3", 2).log_q[0])
  words = np.array(list(itertools.product(range(3), repeat=4)))
  q = np.array([.6, .3, .1])
  np.testing.assert_allclose(made.weight, q[words].prod(1))
  at = [tuple(word) for word in words].index((0, 1, 0, 2))
  assert made.draft.parents[at].tolist() == [-1, 0, -1, 0]
  assert made.draft.valid[at].tolist() == [True, True, False, True]
  np.testing.assert_allclose(np.exp(made.draft.log_q[at, 3]), [.6 / .7, 0, .1 / .7])
  at = [tuple(word) for word in words].index((2, 2, 2, 2))
  assert made.draft.valid[at].tolist() == [True, True, False, False]


def test_deterministic_drafts_are_single_and_have_no_law():
  scheme = drafts.tree((2,), DETERMINISTIC)
  made = _enumerate(scheme, systems.pair("P3", 1).log_q[0])
  assert made.draft.log_q is None and (made.weight == 1).all() and len(made.weight) == 9
  assert drafts.groups(made).weight.shape == (9, 1)
  drawn = _enumerate(drafts.chain(2), systems.pair("P3", 1).log_q[0])
  assert drafts.groups(drawn).weight.shape == (1, 9)
