"""Closed forms of agreement under shared noise: known values, bounds, degenerate laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax.exact import coupling, systems
from specjax.logits import law

AB, P3, R3 = (systems.PAIRS[name] for name in ("AB", "P3", "R3"))


def exactly(function, pair, *rest):
  with jax.enable_x64(True):
    return float(function(*(jnp.asarray(law_, jnp.float64) for law_ in pair), *rest))


@pytest.mark.parametrize("pair, value, tolerance", [
    (P3, 2 / 3, 1e-12), (R3, 41 / 65, 1e-12), (AB, 2 / 3, 1e-12),
    (((.5, .5, 0), (.5, 0, .5)), 1 / 3, 1e-12),  # the worst case at TV 1/2
    (((.4, .3, .3), (.1, .4, .5)), .67907, 5e-6), (((.5, .4, .1), (.7, .1, .2)), .67945, 5e-6),
    (((.45, .35, .2), (.75, .1, .15)), .67903, 5e-6),
    (((1, 0), (0, 1)), 0, 0), (((0, 1, 0), (0, 1, 0)), 1, 0)])
def test_gumbel_acceptance(pair, value, tolerance):
  assert abs(exactly(coupling.gumbel_acceptance, pair) - value) <= tolerance
  assert abs(exactly(coupling.gumbel_acceptance, pair[::-1]) - value) <= tolerance


@pytest.mark.parametrize("pair, paths, value", [
    (AB, 2, .77778), (P3, 2, .77000), (R3, 2, .74658),
    (AB, 8, .92593), (P3, 8, .91647), (R3, 8, .91021)])
def test_list_gumbel_bound(pair, paths, value):
  assert abs(exactly(coupling.list_gumbel_bound, pair, paths) - value) < 5e-6


def test_minhash_agrees_with_its_darts():
  """400,000 pairs of readers; 5 standard errors, a false alarm in 1.7 million."""
  (p, q), n = (np.array(x) for x in P3), 400_000
  rng = np.random.default_rng(0)
  hits = np.full((n, 2), -1)
  while (hits < 0).any():
    token, height = rng.choice(3, size=n), rng.random(n) * .6
    for side, law_ in enumerate((p, q)):
      new = (hits[:, side] < 0) & (height < law_[token])
      hits[new, side] = token[new]
  expected = exactly(coupling.minhash_acceptance, P3)
  assert abs((hits[:, 0] == hits[:, 1]).mean() - expected) < 5 * np.sqrt(.25 / n)


def test_order_of_the_values_on_random_pairs():
  """guarantee <= minhash <= gumbel <= 1 - TV, and the list bound grows with the paths."""
  rng = np.random.default_rng(1)
  with jax.enable_x64(True):
    pairs = jnp.asarray(rng.dirichlet(np.ones(5), (2, 200)) ** rng.choice([1, 4], (2, 200, 1)))
    p, q = pairs / pairs.sum(-1, keepdims=True)
    over = lambda function, *rest: np.asarray(jax.vmap(lambda p, q: function(p, q, *rest))(p, q))
    gumbel, minhash = over(coupling.gumbel_acceptance), over(coupling.minhash_acceptance)
    np.testing.assert_allclose(over(coupling.list_gumbel_bound, 1), gumbel, rtol=0, atol=1e-12)
    assert (np.diff([over(coupling.list_gumbel_bound, k) for k in (1, 2, 4, 8)], axis=0) > 0).all()
    assert (over(coupling.guarantee) <= minhash + 1e-12).all()
    assert ((minhash <= gumbel + 1e-12).all()
            and (gumbel <= over(lambda p, q: 1 - law.tv(p, q)) + 1e-12).all())


def test_two_tokens_reach_the_overlap():
  for pair in (AB, ((.9, .1), (.4, .6)), ((1, 0), (.5, .5))):
    overlap = np.minimum(*np.array(pair)).sum()
    assert abs(exactly(coupling.gumbel_acceptance, pair) - overlap) < 1e-12


def test_equal_laws_always_agree():
  for function, rest in ((coupling.gumbel_acceptance, ()), (coupling.minhash_acceptance, ()),
                         (coupling.guarantee, ()), (coupling.list_gumbel_bound, (4,))):
    assert abs(exactly(function, (P3[0], P3[0]), *rest) - 1) < 1e-12
