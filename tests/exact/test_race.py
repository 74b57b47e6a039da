"""The closed form of coupled acceptance: fractions, the pairwise formula, and the real rules."""

from fractions import Fraction as F

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from specjax import keys as keys_lib, verify
from specjax.exact import coupling, race, systems
from specjax.logits import law
from specjax.types import Draft


@jax.jit
def _one_path(p, q):
  return race.agreement(p, q, 1).sum()


def _agreement(p, q, paths):
  with jax.enable_x64(True):
    compiled = jax.jit(lambda p, q: race.agreement(p, q, paths))
    return np.asarray(compiled(jnp.asarray(p, float), jnp.asarray(q, float)))


def _pair(name):
  made = systems.pair(name, 0)
  return np.exp(made.log_p[0, 0]), np.exp(made.log_q[0, 0])


@pytest.mark.parametrize("name,paths,value", [
    ("AB", 1, F(2, 3)), ("P3", 1, F(2, 3)), ("R3", 1, F(41, 65)),
    ("AB", 2, F(22, 27)), ("AB", 3, F(241, 270))])
def test_acceptance_of_one_position(name, paths, value):
  assert _agreement(*_pair(name), paths).sum() == pytest.approx(float(value), abs=1e-13)


@pytest.mark.parametrize("name,paths,simulated", [
    ("AB", 2, .8154), ("AB", 3, .8928), ("P3", 2, .7931), ("R3", 2, .7741)])
def test_published_scale_of_simulations(name, paths, simulated):
  """An independent simulation of 4e5 draws gave these, +- .002."""
  assert _agreement(*_pair(name), paths).sum() == pytest.approx(simulated, abs=.002)


@pytest.mark.parametrize("seed", range(8))
def test_one_path_is_the_pairwise_formula(seed):
  rng = np.random.default_rng(seed)
  p, q = rng.dirichlet(np.ones(5), 2)
  if seed % 2:
    p[rng.integers(5)], q[rng.integers(5)] = 0, 0
  with jax.enable_x64(True):
    p, q = jnp.asarray(p / p.sum()), jnp.asarray(q / q.sum())
    pairwise = float(coupling.gumbel_acceptance(p, q))
    assert float(_one_path(p, q)) == pytest.approx(pairwise, abs=1e-13)


@pytest.mark.parametrize("paths", [1, 2, 3])
def test_corners(paths):
  equal = np.array([.5, .3, .2])
  np.testing.assert_allclose(_agreement(equal, np.array([0, 0, 1.]), paths).sum(), .2, atol=1e-14)
  assert _agreement([1., 0, 0], [0, .5, .5], paths).sum() == 0
  sure = _agreement([0, 1., 0], [0, 1., 0], paths)
  np.testing.assert_allclose(sure.sum(0), [0, 1, 0], atol=1e-14)
  one = _agreement(equal, equal, paths)
  np.testing.assert_allclose(one.sum(0), equal, atol=1e-13)  # p = q: some path always has it


@pytest.mark.parametrize("seed", range(6))
def test_the_list_bound_holds(seed):
  p, q = np.random.default_rng(seed).dirichlet(np.ones(4), 2)
  with jax.enable_x64(True):
    bound = float(coupling.list_gumbel_bound(jnp.asarray(p), jnp.asarray(q), 3))
  assert bound - 1e-13 <= _agreement(p, q, 3).sum() <= 1


def test_how_many_paths_agree_by_simulation():
  """30 000 races of 3 paths; chi-square over (token, paths that agree); false alarm 1e-6."""
  p, q, number = np.array([.3, .4, .3]), np.array([.6, .3, .1]), 30_000
  clocks = np.random.default_rng(0).exponential(size=(number, 3, 3))
  drafted = (clocks / q).argmin(-1)
  taken = (clocks.min(1) / p).argmin(-1)
  agree = (drafted == taken[:, None]).sum(1)
  observed = np.array([[((taken == y) & (agree == m)).sum() for y in range(3)] for m in (1, 2, 3)])
  expected = number * _agreement(p, q, 3)
  cells = np.append(observed, number - observed.sum())
  means = np.append(expected, number - expected.sum())
  assert ((cells - means) ** 2 / means).sum() < stats.chi2.isf(1e-6, 9)


@pytest.mark.parametrize("name,paths,value", [
    ("AB", 1, F(10, 9)), ("P3", 1, F(10, 9)), ("AB", 2, 1.416), ("P3", 2, 1.361)])
def test_two_positions(name, paths, value):
  made = systems.pair(name, 2)
  with jax.enable_x64(True):
    compiled = jax.jit(lambda p, q: race.accepted(p, q, paths))
    tau = float(compiled(jnp.asarray(made.log_p[0]), jnp.asarray(made.log_q[0])))
  assert tau == pytest.approx(float(value), abs=1e-13 if paths == 1 else .005)


@pytest.mark.parametrize("rule,paths", [("gumbel", 1), ("list_gumbel", 2)])
def test_the_real_rules_accept_that_much(rule, paths):
  """20 000 rounds of one position on P3; the acceptance within 5 standard errors (1e-6)."""
  p, q, number = jnp.log(jnp.array([.3, .4, .3])), jnp.log(jnp.array([.6, .3, .1])), 20_000
  judge = getattr(verify, rule)()

  def accepts(key):
    noise = jax.random.split(key, 2)
    own = [noise[0]] if paths == 1 else [keys_lib.path(noise[0], path) for path in range(paths)]
    tokens = jnp.stack([law.sample(each, q) for each in own])
    draft = Draft(
        tokens, jnp.full(paths, -1, jnp.int32), jnp.stack([q] * paths), jnp.ones(paths, bool))
    return judge.verify(noise, draft, jnp.stack([p] * (paths + 1)), 1).count - 1

  counts = jax.jit(jax.vmap(accepts))(jax.random.split(jax.random.key(1), number))
  rate = np.asarray(counts).mean()
  exact = _agreement([.3, .4, .3], [.6, .3, .1], paths).sum()
  assert rate == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / number))
