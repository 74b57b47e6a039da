"""Token-level intersection: a drafter over another vocabulary, without a change to any rule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import logits, verify
from specjax.exact import law
from specjax.types import Draft

# The published toy: T = {a, b, c} and D = {b, c, d}.
P, Q = np.array([.5, .3, .2]), np.array([.2, .1, .7])
TO_TARGET = np.array([1, 2, -1])


def restricted(q, transform=logits.chain()):
  both = logits.chain(logits.intersect(TO_TARGET, 3), transform)
  return np.exp(np.asarray(logits.log_law(jnp.log(jnp.asarray(q)), both)))


def round_of(p, recorded, drawn, rule=verify.token()):
  """The law of the token and the acceptance, of drafts drawn from `drawn` that record `recorded`.

  drawn float[4]: the probabilities of a, b, c, and of a draft that is no token of the target.
  """
  emitted, accepted = 0, 0
  for token, weight in enumerate(drawn):
    draft = Draft(
        jnp.array([token % 3], jnp.int32), jnp.array([-1], jnp.int32),
        jnp.log(jnp.asarray(recorded))[None], jnp.ones(1, bool))
    judged = rule.judge(draft, jnp.log(jnp.stack([jnp.asarray(p)] * 2)))
    accept = float(judged.accept[0]) if token < 3 else 0.
    emitted = emitted + weight * (1 - accept) * np.exp(np.asarray(judged.log_next(jnp.int32(0))))
    emitted = emitted + weight * accept * np.eye(3)[token % 3]
    accepted += weight * accept
  return emitted, accepted


@pytest.fixture(autouse=True)
def double_precision():
  with jax.enable_x64(True):
    yield


def test_the_law_is_the_restriction_renormalised():
  np.testing.assert_allclose(restricted(Q), [0, 2 / 3, 1 / 3], rtol=0, atol=1e-15)


def test_the_published_toy_accepts_half_where_the_raw_law_accepts_three_tenths():
  q = restricted(Q)
  emitted, accepted = round_of(P, q, np.append(q, 0))
  np.testing.assert_allclose(emitted, P, rtol=0, atol=1e-15)
  assert accepted == pytest.approx(.5, rel=0, abs=1e-15)
  raw = np.array([0, .2, .1])  # drafts of d are lost; not a law, so the shapes alone are checked
  assert np.minimum(P, raw).sum() == pytest.approx(.3)
  assert accepted == pytest.approx(np.minimum(P, q).sum(), rel=0, abs=1e-15)


def test_the_text_keeps_the_target_s_law_whatever_the_map():
  @jax.jit
  def emitted(log_p, log_q, to_target):
    """Each token drafted in turn, and the round's law weighted by its probability."""
    log_q = logits.log_law(log_q, to_target)
    def one(token):
      draft = Draft(
          token[None], jnp.array([-1], jnp.int32), log_q[None], jnp.ones(1, bool))
      ends = law(verify.token(), draft, jnp.stack([log_p, log_p]))
      return jnp.exp(log_q[token]) * (ends[0] + ends[1].sum() * jax.nn.one_hot(token, 5))
    return jax.vmap(one)(jnp.arange(5, dtype=jnp.int32)).sum(0)

  rng = np.random.default_rng(0)
  for _ in range(20):
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(7))
    ids = rng.permutation(np.concatenate([rng.permutation(5)[:4], [-1, -1, -1]]))
    got = emitted(jnp.log(p), jnp.log(q), logits.intersect(ids, 5))
    np.testing.assert_allclose(got, p, rtol=0, atol=1e-14)


def test_mutants_are_biased():
  q = restricted(Q)
  # Restricted at verification, not while sampling: d, drafted with .7, counts as a rejection.
  emitted, _ = round_of(P, q, np.array([0, .2, .1, .7]))
  assert np.abs(emitted - P).sum() / 2 == pytest.approx(.35, rel=0, abs=1e-15)
  # Restricted while sampling, not at verification: the raw masses of b and c are recorded.
  emitted, accepted = round_of(P, np.array([0, .2, .1]), np.append(q, 0))
  np.testing.assert_allclose(emitted, [0, 2 / 3, 1 / 3], rtol=0, atol=1e-15)
  assert accepted == pytest.approx(1)


def test_temperature_and_truncation_belong_to_the_shared_tokens():
  np.testing.assert_allclose(
      restricted(Q, logits.temperature(.5)), [0, .8, .2], rtol=0, atol=1e-14)
  np.testing.assert_allclose(restricted(Q, logits.top_k(1)), [0, 1, 0], rtol=0, atol=1e-15)


def test_leading_axes_jit_and_argument():
  shared = logits.intersect(TO_TARGET, 4)
  x = jnp.arange(24.).reshape(2, 4, 3)
  got = np.asarray(jax.jit(lambda t, x: t(x))(shared, x))
  assert got.shape == (2, 4, 4)
  np.testing.assert_array_equal(got[..., 1:3], x[..., :2])
  assert (got[..., [0, 3]] == -np.inf).all()
  assert jax.tree.structure(shared) == jax.tree.structure(logits.intersect(TO_TARGET, 4))


@pytest.mark.parametrize("ids, message", (
    ([0, 1, 3], "id 3 lies outside"), ([0, 1, 1], "same id"), ([-1, -1], "share no token"),
    ([[0, 1]], "takes ids int"), ([0., 1.], "takes ids int")))
def test_maps_that_make_no_sense_are_refused(ids, message):
  with pytest.raises(ValueError, match=message):
    logits.intersect(np.array(ids), 3)


def test_logits_over_another_vocabulary_are_refused():
  with pytest.raises(ValueError, match="maps 3 drafter tokens"):
    logits.intersect(TO_TARGET, 3)(jnp.zeros(4))
