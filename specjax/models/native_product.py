"""The optional kernel for narrow products on a CPU, `native_product.cc`, as a jax function.

setup.py compiles it where there is a C++ compiler, for the processor it runs on.
"""

import ctypes
import pathlib

import jax
import jax.numpy as jnp

from specjax.types import Array

# One column is what XLA streams as fast as memory allows; from 12 columns on it is as fast again.
MIN_COLUMNS, MAX_COLUMNS = 2, 8
_TARGET = "specjax_product"


def _register() -> bool:
  """Makes the kernel known to XLA; False if it was not compiled."""
  libraries = sorted(pathlib.Path(__file__).parent.glob("_native_product*.so"))
  if not libraries:
    return False
  handler = jax.ffi.pycapsule(ctypes.CDLL(str(libraries[0])).specjax_product)
  jax.ffi.register_ffi_target(_TARGET, handler, platform="cpu")
  return True


AVAILABLE = _register()


def serves(weights: Array, x: Array) -> bool:
  """Whether `product` takes these operands, and one CPU device computes.

  XLA cannot divide a call that it knows nothing about among several devices: it would gather the
  weights.
  """
  return (AVAILABLE and weights.dtype == x.dtype == jnp.float32
          and MIN_COLUMNS <= x.shape[1] <= MAX_COLUMNS and weights.size > 0
          and jax.device_count("cpu") == 1)


def product(weights: Array, x: Array) -> Array:
  """weights [..., in] times x [in, columns], float32[..., columns], for 1 to MAX_COLUMNS of them.

  An element of the result has the same bits for every number of columns and of threads.
  """
  rows = weights.reshape(-1, weights.shape[-1])
  result = jax.ShapeDtypeStruct((rows.shape[0], x.shape[1]), jnp.float32)
  y = jax.ffi.ffi_call(_TARGET, result, vmap_method="sequential")(rows, x)
  return y.reshape(*weights.shape[:-1], x.shape[1])
