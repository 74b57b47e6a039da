"""Drawing a token in two steps has the law of drawing it in one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from specjax.logits import sample_uncoupled
from specjax.types import PAD


def counts(log_p, number, seed=0):
  keys = jax.random.split(jax.random.key(seed), number)
  tokens = np.asarray(jax.jit(jax.vmap(lambda key: sample_uncoupled(key, log_p)))(keys))
  return np.bincount(tokens, minlength=log_p.shape[0])


@pytest.mark.parametrize("vocab", (1, 2, 3, 5, 16, 17, 50))
def test_the_law(vocab):
  """2e5 draws a vocabulary, chi-square over all cells: 7 tests at 1e-4, so 7e-4 false alarms."""
  rng = np.random.default_rng(vocab)
  p = rng.dirichlet(np.ones(vocab)) if vocab > 1 else np.ones(1)
  p[rng.random(vocab) < .3 if vocab > 3 else np.zeros(vocab, bool)] = 0
  p /= p.sum()
  with np.errstate(divide="ignore"):
    observed = counts(jnp.log(jnp.asarray(p, jnp.float32)), 200_000)
  assert observed[p == 0].sum() == 0
  expected = 200_000 * p
  few = expected < 10
  pool = lambda x: np.append(x[~few], x[few].sum())
  kept = pool(expected) > 0
  assert stats.chisquare(pool(observed)[kept], pool(expected)[kept]).pvalue > 1e-4 or vocab == 1


def test_a_test_of_this_size_rejects_a_wrong_block():
  """The mutant picks the block by its number of tokens instead of its mass."""
  p = np.array([.4, .3, .1, .1, .05, .05])
  def mutant(key, log_p):
    block, token = jax.random.split(key)
    start = 3 * jax.random.randint(block, (), 0, 2)
    return start + jax.random.categorical(token, jax.lax.dynamic_slice(log_p, (start,), (3,)))
  keys = jax.random.split(jax.random.key(0), 200_000)
  tokens = jax.jit(jax.vmap(lambda key: mutant(key, jnp.log(jnp.asarray(p, jnp.float32)))))(keys)
  assert stats.chisquare(np.bincount(np.asarray(tokens), minlength=6), 200_000 * p).pvalue < 1e-4


def test_a_large_vocabulary_with_one_possible_token():
  log_p = jnp.full(151_936, -jnp.inf).at[151_935].set(0)
  assert (counts(log_p, 64)[:151_935] == 0).all()


def test_rare_tokens_of_a_large_vocabulary_come_at_their_rate():
  """A token of probability 1e-3 beside 1e5 others, 2e4 draws: Poisson, two-sided 1e-4."""
  log_p = jnp.full(100_000, jnp.log(.999 / 99_999)).at[77_777].set(jnp.log(1e-3))
  drawn = sum(counts(log_p, 2_000, seed)[77_777] for seed in range(10))
  assert stats.poisson.ppf(5e-5, 20) <= drawn <= stats.poisson.ppf(1 - 5e-5, 20)


@pytest.mark.parametrize("row", ([np.nan, 0., -1.], [-np.inf] * 3, [-1., -1., np.nan]))
def test_no_law_gives_pad_and_not_a_token(row):
  assert jax.jit(sample_uncoupled)(jax.random.key(0), jnp.array(row)) == PAD


def test_it_follows_the_dtype():
  with jax.enable_x64(True):
    token = sample_uncoupled(jax.random.key(0), jnp.log(jnp.array([.5, .5])))
    assert token.dtype == jnp.int32
