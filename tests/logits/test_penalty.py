"""Penalties, the counts that they read, and who asks for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import logits as lib
from specjax.types import PAD

X = np.asarray([[2.0, -2.0, 0.0, 1.0, -np.inf], [4.0, 3.0, -1.0, -3.0, 0.5]], np.float32)
COUNTS = np.asarray([[1, 3, 2, 0, 1], [0, 0, 1, 2, 5]], np.int32)
run = jax.jit(lambda transform, *args: transform(*args))


def apply(transform, x=X, counts=COUNTS):
  return np.asarray(run(transform, jnp.asarray(x), jnp.asarray(counts)))


def test_repetition_penalty_divides_positive_and_multiplies_negative_logits():
  np.testing.assert_array_equal(
      apply(lib.repetition_penalty(2.0)),
      [[1, -4, 0, 1, -np.inf], [4, 3, -2, -6, 0.25]])


def test_presence_penalty_does_not_count_twice():
  np.testing.assert_array_equal(
      apply(lib.presence_penalty(0.5)),
      [[1.5, -2.5, -0.5, 1, -np.inf], [4, 3, -1.5, -3.5, 0]])


def test_frequency_penalty_counts():
  np.testing.assert_array_equal(
      apply(lib.frequency_penalty(0.5)),
      [[1.5, -3.5, -1, 1, -np.inf], [4, 3, -1.5, -4, -2]])


@pytest.mark.parametrize("off", [
    lib.repetition_penalty(1), lib.presence_penalty(0), lib.frequency_penalty(0)])
def test_off(off):
  np.testing.assert_array_equal(apply(off), X)


def test_each_row_may_have_its_own_penalty():
  for make in (lib.repetition_penalty, lib.presence_penalty, lib.frequency_penalty):
    apart = [apply(make(value), X[i], COUNTS[i]) for i, value in enumerate((1.5, 2.0))]
    np.testing.assert_array_equal(apply(make([1.5, 2.0])), apart)


def test_penalties_in_a_chain_see_the_counts_and_without_them_say_so():
  for make in (lib.repetition_penalty, lib.presence_penalty, lib.frequency_penalty):
    transform = lib.chain(lib.chain(make(1.5)), lib.temperature(0.5), lib.top_k(3))
    direct = run(lib.chain(lib.temperature(0.5), lib.top_k(3)), jnp.asarray(apply(make(1.5))))
    np.testing.assert_array_equal(apply(transform), direct)
    np.testing.assert_array_equal(
        jax.jit(lib.log_law)(X, transform, COUNTS), jax.nn.log_softmax(direct))
    for missing in (lambda: make(1.5)(X), lambda: lib.log_law(jnp.asarray(X), transform)):
      with pytest.raises(ValueError, match=f"{make.__name__} needs counts"):
        missing()


def test_uses_counts_is_known_before_anything_runs():
  plain = lib.chain(lib.temperature(1.0), lib.top_p(0.9), lambda x: x)
  reading = lib.chain(plain, lib.chain(lib.presence_penalty(1.0)))
  assert lib.uses_counts(plain) is False and lib.uses_counts(lib.chain()) is False
  assert lib.uses_counts(reading) is True and lib.uses_counts(lambda x: x) is False
  seen = []
  jax.jit(lambda t: seen.append(lib.uses_counts(t)))(reading)
  assert seen == [True]


def test_a_penalty_of_ones_own():
  """One decorator makes a function of logits and counts a penalty."""

  @lib.reads_counts
  def never_twice(logits, counts):
    return jnp.where(counts > 0, -jnp.inf, logits)

  transform = lib.chain(never_twice, lib.temperature(1.0))
  assert lib.uses_counts(never_twice) and lib.uses_counts(transform)
  np.testing.assert_array_equal(apply(transform), np.where(COUNTS > 0, -np.inf, X))


def test_bad_penalties_are_named():
  for make, bad in ((lib.repetition_penalty, 0), (lib.repetition_penalty, -1),
                    (lib.repetition_penalty, np.inf), (lib.presence_penalty, np.nan),
                    (lib.frequency_penalty, -np.inf), (lib.frequency_penalty, "much")):
    with pytest.raises(ValueError, match=make.__name__):
      make(bad)


def test_token_counts():
  rng = np.random.default_rng(0)
  tokens = rng.integers(0, 7, (2, 3, 11)).astype(np.int32)
  tokens[0, 1, 5:] = PAD
  tokens[1, 2] = PAD
  counts = np.asarray(jax.jit(lib.token_counts, static_argnums=1)(tokens, 7))
  assert counts.dtype == np.int32
  for row, count in zip(tokens.reshape(-1, 11), counts.reshape(-1, 7)):
    np.testing.assert_array_equal(count, np.bincount(row[row != PAD], minlength=7))


def test_token_counts_of_nothing_and_of_strangers():
  """PAD does not wrap around to the last token; an id beyond the vocabulary is not counted."""
  np.testing.assert_array_equal(lib.token_counts(jnp.full(4, PAD), 3), [0, 0, 0])
  np.testing.assert_array_equal(lib.token_counts(jnp.zeros(0, jnp.int32), 3), [0, 0, 0])
  np.testing.assert_array_equal(lib.token_counts(jnp.asarray([2, 3, 9]), 3), [0, 0, 1])
