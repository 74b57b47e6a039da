"""Rotary positions: closed forms of each scaling, and the properties that attention relies on."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest

from specjax.models import rope
from specjax.models.config import RopeScaling
from tests.models import reference, toys
from tests.models.toys import but

# Published settings: SmolLM2, Llama 3.1, Qwen2.5 long context, and short toys.
WIDE = dict(head_dim=64, max_length=8192)
SCALINGS = toys.KINDS | {
    "plain": but(**WIDE, rope_theta=1e5),
    "linear, wide": but(**WIDE, rope_scaling=RopeScaling("linear", 4.0)),
    "llama3.1": but(head_dim=128, max_length=131072, rope_theta=5e5,
                  rope_scaling=RopeScaling("llama3", 8.0, 8192, 1.0, 4.0)),
    "llama3.2": but(head_dim=64, max_length=131072, rope_theta=5e5,
                    rope_scaling=RopeScaling("llama3", 32.0, 8192, 1.0, 4.0)),
    "qwen2.5": but(head_dim=128, max_length=131072, rope_theta=1e6,
                rope_scaling=RopeScaling("yarn", 4.0, 32768)),
    "yarn, trained length unsaid": but(**WIDE, rope_scaling=RopeScaling("yarn", 2.0)),
    "yarn, empty ramp": but(**WIDE, rope_scaling=RopeScaling(
        "yarn", 2.0, 4096, beta_fast=1e6, beta_slow=1e5)),
    "yarn, ramp to the end": but(**WIDE, rope_scaling=RopeScaling(
        "yarn", 8.0, 64, beta_fast=2.0, beta_slow=0.01)),
}


@pytest.mark.parametrize("name", SCALINGS)
def test_frequencies_are_those_of_the_reference(name):
  config = SCALINGS[name]
  expected = [reference.frequency(config, plane) for plane in range(config.head_dim // 2)]
  np.testing.assert_allclose(rope.frequencies(config), expected, rtol=1e-12)


def test_llama3_keeps_short_waves_and_stretches_long_ones():
  config = SCALINGS["llama3.1"]
  ratio = (rope.frequencies(dataclasses.replace(config, rope_scaling=None))
           / rope.frequencies(config))
  waves = 2 * math.pi * 5e5 ** (np.arange(64) / 64)
  np.testing.assert_allclose(ratio[waves < 8192 / 4], 1, rtol=1e-12)
  np.testing.assert_allclose(ratio[waves > 8192], 8, rtol=1e-12)
  between = ratio[(waves > 8192 / 4) & (waves < 8192)]
  assert len(between) > 2 and (np.diff(between) > 0).all() and 1 < between[0] < between[-1] < 8


def test_yarn_keeps_fast_planes_and_stretches_slow_ones():
  config = SCALINGS["qwen2.5"]
  ratio = (rope.frequencies(dataclasses.replace(config, rope_scaling=None))
           / rope.frequencies(config))
  turns = 32768 * 1e6 ** -(np.arange(64) / 64) / (2 * math.pi)
  np.testing.assert_allclose(ratio[turns > 33], 1, rtol=1e-12)
  np.testing.assert_allclose(ratio[turns < 0.8], 4, rtol=1e-12)
  assert (np.diff(ratio) >= 0).all()


@pytest.mark.parametrize("scaling, expected", [
    (None, 1.0),
    (RopeScaling("linear", 4.0), 1.0),
    (RopeScaling("llama3", 8.0, 8192), 1.0),
    (RopeScaling("yarn", 4.0, 32768), 0.1 * math.log(4) + 1),
    (RopeScaling("yarn", 0.5, 32768), 1.0),
    (RopeScaling("yarn", 4.0, 32768, attention_factor=1.25), 1.25),
])
def test_magnitude(scaling, expected):
  assert rope.magnitude(scaling) == pytest.approx(expected, abs=1e-15)


def test_rotation_is_by_complex_numbers():
  config = toys.KINDS["yarn"]
  positions = np.array([[0, 3, 50], [7, 7, 63]], np.int32)
  heads = np.random.default_rng(0).normal(size=(5, 8, 2, 3)).astype(np.float32)
  turned = rope.rotate(jnp.asarray(heads), rope.rotation(config, positions))
  for h, row, t in np.ndindex(5, 2, 3):
    expected = reference.rotated(config, heads[h, :, row, t], positions[row, t])
    # Angles are float32: 6e-8 of up to 63 radians, times numbers up to 4.
    np.testing.assert_allclose(turned[h, :, row, t], expected, rtol=0, atol=3e-5)


def test_scores_depend_on_the_distance_alone():
  config = SCALINGS["plain"]
  rng = np.random.default_rng(1)
  q, k = (jnp.asarray(rng.normal(size=(1, 64, 1, 1)), jnp.float32) for _ in range(2))

  def score(at_q, at_k):
    turn = lambda x, at: rope.rotate(x, rope.rotation(config, jnp.full((1, 1), at, jnp.int32)))
    return float(jnp.sum(turn(q, at_q) * turn(k, at_k)))

  near = [score(5 + shift, 2 + shift) for shift in (0, 10, 1000)]
  np.testing.assert_allclose(near, near[0], rtol=0, atol=5e-3)  # 6e-8 of 1000 radians, 64 terms
  assert abs(score(9, 2) - near[0]) > 0.1


def test_bfloat16_heads_are_turned_in_float32():
  config = SCALINGS["plain"]
  by = rope.rotation(config, jnp.array([[4000]], jnp.int32))
  heads = jnp.asarray(np.random.default_rng(2).normal(size=(2, 64, 1, 1)), jnp.bfloat16)
  turned = rope.rotate(heads, by)
  assert turned.dtype == jnp.bfloat16
  exact = rope.rotate(heads.astype(jnp.float32), by)
  np.testing.assert_array_equal(turned, exact.astype(jnp.bfloat16))
