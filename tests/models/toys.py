"""Small decoders of every supported kind, with weights that make each term matter."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from specjax.models import transformer
from specjax.models.config import ModelConfig, RopeScaling

LLAMA = ModelConfig(
    vocab_size=53, hidden_size=24, mlp_size=40, num_layers=3, num_heads=4, num_kv_heads=2,
    head_dim=8, max_length=64)


def but(**changes) -> ModelConfig:
  return dataclasses.replace(LLAMA, **changes)


KINDS = {
    "llama": LLAMA,
    "one head each": but(num_kv_heads=4, rope_theta=1e5, norm_eps=1e-2),
    "one kv head": but(num_heads=3, num_kv_heads=1, head_dim=6),
    "wide heads": but(head_dim=16, tied_head=False),
    "qwen2": but(qkv_bias=True, norm_eps=1e-6),
    "qwen3": but(qk_norm=True, head_dim=12, tied_head=False),
    "all biases": but(qkv_bias=True, out_bias=True, qk_norm=True),
    "linear": but(rope_scaling=RopeScaling("linear", 4.0)),
    "llama3": but(rope_scaling=RopeScaling("llama3", 8.0, original_length=32)),
    "yarn": but(rope_scaling=RopeScaling("yarn", 4.0, original_length=16, beta_fast=4.0)),
}

# float32 rounds at 6e-8; about a hundred roundings of numbers up to 5 lie on the way to a logit.
ROUNDING = dict(rtol=0, atol=3e-5)


def params_of(config: ModelConfig, seed: int = 0):
  """Random weights, with norms away from 1 and biases from 0, where `init_params` leaves them."""
  params = transformer.init_params(config, jax.random.key(seed))
  leaves, tree = jax.tree.flatten(params)
  keys = jax.random.split(jax.random.key(seed + 1), len(leaves))
  noise = [0.3 * jax.random.normal(key, leaf.shape, leaf.dtype) for key, leaf in zip(keys, leaves)]
  return jax.tree.unflatten(tree, [jnp.add(*pair) for pair in zip(leaves, noise)])


def tokens_of(*shape, seed=0):
  rng = np.random.default_rng(seed)
  return rng.integers(LLAMA.vocab_size, size=shape).astype(np.int32)


def lengths_of(*numbers):
  return np.array(numbers, np.int32)
