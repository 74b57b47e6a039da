"""The two operations that every sub-layer uses, on activations laid out as columns.

Activations are [features, columns], one column a token (the batch is flattened into columns), and
weights stand on the left as [..., in], the orientation of checkpoints. A CPU then streams each
weight matrix once, row by row, however many tokens are verified together: with XLA's products
scoring four tokens costs about 1.3 times one token, against 1.7 in the usual [tokens, features]
layout. The kernel of `native_product`, where it was compiled, brings that close to 1 for two to
eight tokens.
"""

import jax
import jax.numpy as jnp
from jax import lax

from specjax.models import native_product
from specjax.types import Array


def product(weights: Array, x: Array) -> Array:
  """weights [..., in] times x [in, columns], float32[..., columns] whatever the model's dtype."""
  if native_product.serves(weights, x):
    return _native_on_cpu(weights, x)
  return _xla_product(weights, x)


def _xla_product(weights: Array, x: Array) -> Array:
  columns = x.shape[1]
  x = jnp.pad(x, ((0, 0), (0, _width(columns) - columns)))
  contract = ((weights.ndim - 1,), (0,)), ((), ())
  y = lax.dot_general(weights, x, contract, preferred_element_type=jnp.float32)
  return y[..., :columns]


@jax.custom_jvp
def _native_on_cpu(weights: Array, x: Array) -> Array:
  return lax.platform_dependent(weights, x, cpu=native_product.product, default=_xla_product)


@_native_on_cpu.defjvp
def _native_jvp(primals, tangents):
  """XLA's products for the derivatives: it can transpose them, which it cannot do with a call."""
  (weights, x), (weights_dot, x_dot) = primals, tangents
  slope = _xla_product(weights_dot, x) + _xla_product(weights, x_dot)
  return _native_on_cpu(weights, x), slope


def project(weights: Array, x: Array, bias: Array | None = None) -> Array:
  """The product in x's dtype, plus a bias [...]."""
  y = product(weights, x).astype(x.dtype)
  return y if bias is None else y + bias[..., None]


def _width(columns: int) -> int:
  """CPU kernels work on 1, 4 or whole groups of 8 columns; anything between takes a slow path."""
  return columns if columns <= 4 else -(-columns // 8) * 8


def rms_norm(x: Array, scale: Array, eps: float, axis: int = 0) -> Array:
  """Root-mean-square normalisation (Zhang, Sennrich 2019, arXiv 1910.07467) along `axis`.

  Computed in float32. `scale` has one entry for each feature of that axis.
  """
  wide = x.astype(jnp.float32)
  wide = wide * lax.rsqrt(jnp.mean(wide * wide, axis, keepdims=True) + eps)
  shape = [1] * x.ndim
  shape[axis] = scale.size
  return wide.astype(x.dtype) * scale.reshape(shape)
