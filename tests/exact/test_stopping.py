"""Drafts that end early: exact by enumeration, and the saving is real.

The drafts are those of `chains.continues` itself, the function that drafters stop by.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import verify
from specjax.exact import drafts, prefixes, rounds, systems
from specjax.trees import chains

LENGTH = 5  # tokens: one round gives at most four, so two rounds at least
STOPPED = drafts.chain(3)._replace(name="stopped", stop_below=.45)


def _tables(made, index):
  return jnp.asarray(made.log_p[index]), jnp.asarray(made.log_q[index])


@pytest.fixture(scope="module")
def made():
  return systems.random(5, 3, 3, LENGTH - 1 + 3)  # flat, sharp, and a drafter near the target


@functools.partial(jax.jit, static_argnums=1)
def _law_of_rounds(rule, scheme, log_p, log_q):
  return rounds.law_of_rounds(rule, scheme, log_p, log_q, LENGTH)


@pytest.mark.parametrize("name", ["token", "block"])
def test_rounds_of_stopped_drafts_keep_the_joint_law(made, name):
  """Three prefix-dependent systems over three tokens, in float64."""
  for index in range(3):
    with jax.enable_x64(True):
      log_p, log_q = _tables(made, index)
      found = np.asarray(_law_of_rounds(getattr(verify, name)(), STOPPED, log_p, log_q))
      target = np.asarray(rounds.joint(log_p))[prefixes.level(3, LENGTH)]
    assert np.abs(found - target).sum() / 2 < 1e-12


def test_drafts_of_every_length_come_up(made):
  rows = prefixes.below(3, np.arange(13), 3)
  with jax.enable_x64(True):
    log_q = jnp.asarray(made.log_q)[:, rows].reshape(-1, rows.shape[1], 3)
    every = jax.jit(jax.vmap(functools.partial(drafts.enumerate_drafts, STOPPED)))(log_q)
  weight, lengths = np.asarray(every.weight), np.asarray(every.draft.valid.sum(-1))
  np.testing.assert_allclose(weight.sum(1), 1, atol=1e-12)
  seen = [weight[lengths == length].sum() / len(weight) for length in range(4)]
  assert min(seen) > .02


def _dropped(scheme, log_q, kept_above=.45):
  """Mutant: the token at which a draft has become unlikely is drawn, looked at, and left out."""
  every = drafts.enumerate_drafts(scheme, log_q)
  chosen = jnp.take_along_axis(every.draft.log_q, every.draft.tokens[..., None], axis=-1)[..., 0]
  likely = jnp.cumsum(chosen, axis=1) >= jnp.log(kept_above)
  valid = jnp.cumprod(likely, axis=1).astype(bool)
  return every._replace(draft=every.draft._replace(valid=valid))


@pytest.mark.parametrize("name", ["token", "block"])
def test_leaving_out_a_token_for_what_it_is_is_a_bias(made, name):
  rule = getattr(verify, name)()
  found = []
  for index in range(3):
    with jax.enable_x64(True):
      rows = prefixes.count(3, 3)
      log_p, log_q = (table[:rows] for table in _tables(made, index))
      judge = jax.jit(lambda p, q: rounds.total_variation(
          rounds.one_round(rule, _dropped(drafts.chain(3), q), p), p))
      found.append(float(judge(log_p, log_q)))
  assert min(found) > 1e-3 and max(found) > .05  # a right draft leaves less than 1e-12


def test_what_goes_on_by_hand():
  logits = jnp.log(jnp.asarray([[.5, .3, .2], [.9, .05, .05]]))
  half, almost = jnp.log(.5), jnp.log(.99)
  goes = lambda likely, stop: chains.continues(
      jnp.asarray(likely), logits, jnp.float32(stop)).tolist()
  assert goes([0., 0.], .6) == [False, True]
  assert goes([half, half], .4) == [False, True]  # .25 and .45
  assert goes([almost, almost], .99) == [False, False]
  assert chains.continues(jnp.zeros(1), logits[:1] * jnp.nan, jnp.float32(.5)).tolist() == [True]


@pytest.mark.parametrize("stop_below, steps, lengths", [
    (None, 3, [4, 4]), (1e-9, 3, [4, 4]), (.3, 3, [1, 4]), (.45, 3, [1, 3]), (.6, 2, [0, 2]),
    (.7, 1, [0, 1]), (.99, 0, [0, 0])])
def test_drawing_ends_when_all_rows_have_stopped(stop_below, steps, lengths):
  """The steps of the drafter are counted in its carry; scores say (.5, .5) and (.8, .2)."""
  scores = jnp.log(jnp.asarray([[.5, .5], [.8, .2]]))
  keys = jax.random.split(jax.random.key(0), (2, 4))
  stop = chains.stopping(stop_below)
  draft, count = jax.jit(lambda keys: chains.draw_chain(
      scores, lambda count, tokens, depth: (scores, count + 1), jnp.int32(0), keys,
      lambda logits, drafted: jax.nn.log_softmax(logits * 100), stop))(keys)
  assert int(count) == steps and draft.valid.sum(1).tolist() == lengths
  assert (np.asarray(draft.valid) == (np.arange(4) < np.array(lengths)[:, None])).all()
  full, _ = chains.draw_chain(
      scores, lambda count, tokens, depth: (scores, count), jnp.int32(0), keys,
      lambda logits, drafted: jax.nn.log_softmax(logits * 100))
  drawn = np.asarray(draft.valid)
  assert (np.asarray(draft.tokens)[drawn] == np.asarray(full.tokens)[drawn]).all()
  np.testing.assert_allclose(
      np.asarray(draft.log_q)[drawn], np.asarray(full.log_q)[drawn], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [0, -.1, 1.5, float("nan")])
def test_the_threshold_is_a_probability(wrong):
  with pytest.raises(ValueError, match="stop_below must be above 0"):
    chains.stopping(wrong)
