"""Rotary positions (Su et al. 2021, arXiv 2104.09864) with the usual context extensions.

The halves of a head are the two coordinates of each rotated plane (plane i is made of features i
and i + head_dim / 2), the convention of Hugging Face checkpoints.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from specjax.models.config import ModelConfig, RopeScaling
from specjax.types import Array


class Rotation(NamedTuple):
  """Cosines and sines float32[head_dim / 2, B, T] of the planes at each token's position."""

  cos: Array
  sin: Array


def frequencies(config: ModelConfig) -> np.ndarray:
  """Radians per token of each plane, float64[head_dim / 2], after scaling."""
  plain = config.rope_theta ** -(np.arange(0, config.head_dim, 2) / config.head_dim)
  scaling = config.rope_scaling
  if scaling is None:
    return plain
  if scaling.kind == "linear":
    return plain / scaling.factor
  kept = _llama3_kept(config, plain) if scaling.kind == "llama3" else _yarn_kept(config)
  return kept * plain + (1 - kept) * plain / scaling.factor


def _trained_length(config: ModelConfig) -> int:
  return config.rope_scaling.original_length or config.max_length


def _llama3_kept(config: ModelConfig, plain: np.ndarray) -> np.ndarray:
  """How much of each frequency survives: 1 for short waves, 0 for long ones, a ramp between.

  Llama 3 (Grattafiori et al. 2024, arXiv 2407.21783), as in the released 3.1 code.
  """
  scaling = config.rope_scaling
  waves = _trained_length(config) * plain / (2 * math.pi)  # full turns within the trained context
  ramp = (waves - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
  return np.clip(ramp, 0, 1)


def _yarn_kept(config: ModelConfig) -> np.ndarray:
  """The same share for YaRN's NTK-by-parts (Peng et al. 2023, arXiv 2309.00071, section 3.2).

  The ramp is linear in the index of the plane and its ends are rounded outwards, as released.
  """
  scaling = config.rope_scaling

  def plane(turns: float) -> float:
    """The (fractional) plane that makes `turns` full turns within the trained context."""
    longest = _trained_length(config) / (2 * math.pi * turns)
    return config.head_dim * math.log(longest) / (2 * math.log(config.rope_theta))

  low = max(math.floor(plane(scaling.beta_fast)), 0)
  high = min(math.ceil(plane(scaling.beta_slow)), config.head_dim - 1)
  width = high - low or 1e-3  # an empty ramp is a step
  return 1 - np.clip((np.arange(config.head_dim // 2) - low) / width, 0, 1)


def magnitude(scaling: RopeScaling | None) -> float:
  """The factor on cos and sin: YaRN's attention temperature (section 3.4), else 1."""
  if scaling is None or scaling.kind != "yarn":
    return 1.0
  if scaling.attention_factor is not None:
    return scaling.attention_factor
  return 0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0


def rotation(config: ModelConfig, positions: Array) -> Rotation:
  """The rotation of tokens at the absolute `positions` int32[B, T]; float32 whatever the model."""
  rates = jnp.asarray(frequencies(config), jnp.float32)
  angles = rates[:, None, None] * positions.astype(jnp.float32)[None]
  factor = jnp.float32(magnitude(config.rope_scaling))
  return Rotation(factor * jnp.cos(angles), factor * jnp.sin(angles))


def rotate(x: Array, by: Rotation) -> Array:
  """Rotates heads float[..., head_dim, B, T]; computed in float32, returned in x's dtype."""
  first, second = jnp.split(x.astype(jnp.float32), 2, axis=-3)
  cos, sin = (jnp.expand_dims(a, tuple(range(x.ndim - 3))) for a in by)
  turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-3)
  return turned.astype(x.dtype)
