"""Systems are laws, over every prefix, and the corners are where they are said to be."""

import numpy as np
import pytest

from specjax.exact import prefixes, systems


def _named(made, name):
  index = made.names.index(name)
  return np.exp(made.log_p[index]), np.exp(made.log_q[index])


@pytest.mark.parametrize("vocab,depth", [(2, 3), (3, 2), (5, 1)])
def test_all_rows_are_laws_and_prefix_dependent(vocab, depth):
  made = systems.concatenate(systems.random(0, 9, vocab, depth), systems.degenerate(vocab, depth))
  for table in (made.log_p, made.log_q):
    assert table.shape == (len(made.names), prefixes.count(vocab, depth), vocab)
    np.testing.assert_allclose(np.exp(table).sum(-1), 1, atol=1e-14)
  assert (np.ptp(made.log_p[:9], axis=1) > 0).all()


def test_random_systems_follow_the_seed():
  first, again, other = (systems.random(seed, 3, 3, 1) for seed in (4, 4, 5))
  np.testing.assert_array_equal(first.log_p, again.log_p)
  assert (first.log_p != other.log_p).all()


def test_corners():
  made = systems.degenerate(4, 2)
  p, q = _named(made, "disjoint")
  assert (np.minimum(p, q) == 0).all()
  p, q = _named(made, "equal")
  np.testing.assert_array_equal(p, q)
  for name, hot in (("one-hot target", 0), ("one-hot drafter", 1), ("equal one-hot", 0)):
    assert (_named(made, name)[hot].max(-1) == 1).all()
  p, q = _named(made, "drafter without some tokens")
  assert ((q == 0) & (p > 0)).any(-1).all()
  p, q = _named(made, "target without some tokens")
  assert ((p == 0) & (q > 0)).any(-1).all()
  p, q = _named(made, "tied ratios")
  ties = np.isclose(p[:, :, None] * q[:, None], q[:, :, None] * p[:, None]).sum() - p.size
  assert ties > len(p)


def test_named_pairs():
  made = systems.pair("P3", 1)
  np.testing.assert_allclose(np.exp(made.log_p[0]), np.tile([.3, .4, .3], (4, 1)), rtol=1e-15)
  np.testing.assert_allclose(np.exp(made.log_q[0]), np.tile([.6, .3, .1], (4, 1)), rtol=1e-15)
  with pytest.raises(ValueError, match="unknown pair 'P4'; known: AB, P3, S3, R3"):
    systems.pair("P4", 1)
