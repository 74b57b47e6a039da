"""Keys: one derivation, streams that never meet, rows that do not know their batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import keys

KEY = jax.random.key(11)


def bits(array):
  return {tuple(data) for data in np.asarray(jax.random.key_data(array)).reshape(-1, 2)}


def test_every_use_has_its_own_key():
  """All rows, rounds, depths and positions of a small grid: no two keys are equal.

  The key of a round is split by the rule, and its halves could be the drafter's keys.
  """
  rows = jnp.arange(5)
  drafts = [bits(keys.draft(KEY, rows, jnp.int32(r), 4)) for r in range(6)]
  coins = [bits(keys.verify(KEY, rows, jnp.int32(r))) for r in range(6)]
  field = bits(keys.positions(KEY, rows, jnp.zeros(5, jnp.int32), 30))
  halves = [bits(jax.vmap(jax.random.split)(keys.verify(KEY, rows, r))) for r in range(6)]
  together = drafts + coins + halves + [field]
  assert len(set.union(*together)) == sum(map(len, together)) == 6 * (20 + 5 + 10) + 150


def test_a_row_depends_on_its_id_alone():
  rows = jnp.asarray([7, 3, 9])
  alone = jnp.asarray([3])
  for derive in (lambda r: keys.draft(KEY, r, jnp.int32(2), 3), lambda r: keys.verify(KEY, r, 2)):
    assert bits(derive(rows)[1]) == bits(derive(alone)[0])


def test_positions_are_absolute():
  """A window that starts two positions later reads the same field, shifted."""
  rows = jnp.asarray([0, 4])
  early = keys.positions(KEY, rows, jnp.asarray([10, 20]), 5)
  late = keys.positions(KEY, rows, jnp.asarray([12, 22]), 3)
  np.testing.assert_array_equal(
      jax.random.key_data(early[:, 2:]), jax.random.key_data(late))


def test_round_keys_are_fresh_and_position_keys_are_not():
  rows, start = jnp.arange(2), jnp.asarray([3, 3])
  assert bits(keys.verify(KEY, rows, 0)).isdisjoint(bits(keys.verify(KEY, rows, 1)))
  assert bits(keys.positions(KEY, rows, start, 4)) == bits(keys.positions(KEY, rows, start, 4))


def test_path_zero_is_the_position_and_the_others_are_new():
  field = keys.positions(KEY, jnp.arange(2), jnp.asarray([3, 3]), 4)
  assert bits(keys.path(field[0, 1], 0)) == bits(field[0, 1])
  paths = bits(jax.vmap(lambda k: keys.path(field[0, 1], k))(jnp.arange(6)))
  assert len(paths | bits(field)) == 6 + 8 - 1
  drawn = {tuple(x) for x in np.asarray(
      jax.random.bits(field[0, 1], (200_000, 2), "uint32")).tolist()}
  assert paths.isdisjoint(drawn)


@pytest.mark.parametrize("seed", ["1", -1, 2**63, 1.5, True, None])
def test_bad_seeds_are_refused(seed):
  with pytest.raises(ValueError, match="seed"):
    keys.from_seed(seed)


@pytest.mark.parametrize(
    "wrong", [jax.random.split(KEY, 2), jnp.zeros(3, jnp.uint32), jnp.zeros(2)])
def test_what_is_not_one_key_is_refused(wrong):
  rows = jnp.arange(2)
  for derive in (keys.draft, keys.verify, keys.positions):
    with pytest.raises(ValueError, match=r"[Kk]ey.*got .*\([23],\)"):
      derive(wrong, rows, rows, *[3] * (derive is not keys.verify))


def test_raw_keys_are_taken():
  rows = jnp.arange(2)
  np.testing.assert_array_equal(*(
      jax.random.key_data(keys.draft(key, rows, jnp.int32(1), 3))
      for key in (jax.random.PRNGKey(3), jax.random.key(3))))


def test_seeds_make_typed_keys():
  assert jnp.issubdtype(keys.from_seed(2**63 - 1).dtype, jax.dtypes.prng_key)
  assert len({tuple(jax.random.key_data(keys.from_seed(s)).tolist()) for s in range(100)}) == 100
