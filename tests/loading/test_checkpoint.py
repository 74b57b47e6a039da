"""Checkpoints: what is saved comes back, and nothing else does."""

import typing

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from specjax.loading import checkpoint, LoadError
from specjax.models import transformer
from specjax.models.config import ModelConfig


class State(typing.NamedTuple):
  params: dict
  step: jax.Array
  nothing: None = None


def state(width: int = 3) -> State:
  params = {"a": jnp.arange(width, dtype=jnp.float32), "b": jnp.ones((2, width), jnp.bfloat16)}
  return State(params, jnp.int32(7))


def same(one, other):
  assert jax.tree.structure(one) == jax.tree.structure(other)
  for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other)):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(np.asarray(a, np.float32), np.asarray(b, np.float32))


def test_a_tree_comes_back_with_its_types(tmp_path):
  checkpoint.save(tmp_path / "c", state())
  same(checkpoint.restore(tmp_path / "c", state()), state())
  shapes = jax.eval_shape(state)
  same(checkpoint.restore(tmp_path / "c", shapes), state())


def test_an_optimiser_state_comes_back(tmp_path):
  optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))
  before = optimiser.init(state().params)
  checkpoint.save(tmp_path / "c", before)
  same(checkpoint.restore(tmp_path / "c", before), before)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_keys_come_back_with_their_implementation(tmp_path, impl):
  key = jax.random.key(6, impl=impl)
  tree = {"one": jax.random.key(5, impl=impl), "many": jax.random.split(key, 3)}
  checkpoint.save(tmp_path / "c", tree)
  back = checkpoint.restore(tmp_path / "c", tree)
  for name in tree:
    assert back[name].dtype == tree[name].dtype
    np.testing.assert_array_equal(jax.random.key_data(back[name]), jax.random.key_data(tree[name]))
  np.testing.assert_array_equal(jax.random.bits(back["one"]), jax.random.bits(tree["one"]))


def test_a_key_of_another_implementation_is_refused(tmp_path):
  checkpoint.save(tmp_path / "c", {"key": jax.random.key(0, impl="threefry2x32")})
  with pytest.raises(LoadError, match="rbg"):
    checkpoint.restore(tmp_path / "c", {"key": jax.random.key(0, impl="rbg")})


@pytest.mark.parametrize("like, problem", [
    (state(4), "'a'.* should be float32\\[4\\], found float32\\[3\\]"),
    (State(state().params | {"c": jnp.zeros(1)}, jnp.int32(0)), "'c'.* found nothing"),
    (State({"a": state().params["a"]}, jnp.int32(0)), "'b'.* should be absent"),
    (State(state().params, jnp.float32(0)), "step should be float32"),
])
def test_a_tree_that_does_not_fit_is_refused(tmp_path, like, problem):
  checkpoint.save(tmp_path / "c", state())
  with pytest.raises(LoadError, match=problem):
    checkpoint.restore(tmp_path / "c", like)


def test_a_deep_model_is_not_half_filled_from_a_shallow_one(tmp_path):
  config = dict(vocab_size=7, hidden_size=4, mlp_size=4, num_heads=1, num_kv_heads=1, head_dim=4,
                max_length=8)
  shallow = transformer.param_shapes(ModelConfig(num_layers=1, **config))
  checkpoint.save(tmp_path / "c", jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shallow))
  with pytest.raises(LoadError, match="layer_1"):
    deep = transformer.param_shapes(ModelConfig(num_layers=2, **config))
    checkpoint.restore(tmp_path / "c", deep)


def test_what_is_not_a_checkpoint_is_refused(tmp_path):
  with pytest.raises(LoadError, match="not a usable checkpoint"):
    checkpoint.restore(tmp_path / "none", state())
  (tmp_path / "empty").mkdir()
  with pytest.raises(LoadError, match="not a usable checkpoint"):
    checkpoint.restore(tmp_path / "empty", state())


def test_an_existing_checkpoint_is_not_overwritten(tmp_path):
  checkpoint.save(tmp_path / "c", state())
  with pytest.raises(ValueError):
    checkpoint.save(tmp_path / "c", state())
