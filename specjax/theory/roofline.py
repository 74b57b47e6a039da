"""The roofline of a decoding pass: when it waits for memory, and how many rows that leaves free.

Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009. A pass reads every weight once and
every cached key and value of its sequences once, whatever the number of rows; its arithmetic grows
with the rows. Until the arithmetic takes as long as the reading, a further row costs almost
nothing: these are the rows that speculative decoding fills.
"""

from typing import NamedTuple

import jax.numpy as jnp

from specjax.theory.devices import Device, DEVICES
from specjax.types import Error


class Attention(NamedTuple):
  """The numbers of a transformer that decide what its cache costs."""

  layers: int
  heads: int
  kv_heads: int
  head_size: int


class Roofline(NamedTuple):
  """One pass of one chip; bytes, FLOP and seconds are those of the whole batch."""

  weight_bytes: float
  cache_bytes: float
  bytes: float  # read from memory
  flops: float
  ridge: float  # FLOP a byte at which arithmetic takes as long as reading
  memory_seconds: float
  compute_seconds: float
  seconds: float  # the larger of the two: a lower bound of the time of a pass
  tokens_per_second: float  # an upper bound of plain decoding: one token a sequence and pass
  free_rows: float  # rows of one sequence up to which the pass still waits for memory


def roofline(device: str | Device, parameters: float, dtype: str = "bfloat16", batch: int = 1,
             rows: int = 1, context: int = 0, attention: Attention | None = None) -> Roofline:
  """Bounds the time of a decoding pass from below.

  Arithmetic is 2 FLOP for each parameter and row, plus 4 layers heads head_size context for
  attention over the cache (two products). Activations, logits and what a row writes to the cache
  are left out.
  With an untied embedding, leave its parameters out: a pass looks up rows of it only.

  Args:
    device: a name in `theory.DEVICES`, or a `Device` of your own.
    parameters: the parameters that a pass reads and multiplies.
    dtype: of weights, cache and arithmetic, by its JAX name.
    batch: sequences of the pass.
    rows: tokens of one sequence that the pass scores (gamma + 1 in verification).
    context: cached tokens of each sequence.
    attention: the shape of the cache; required if context > 0.

  Raises:
    Error: an unknown device, a dtype without a published peak, a number out of range.
  """
  device = _device(device)
  if dtype not in device.peak:
    raise Error(
        f"{device.name} has no published peak for dtype {dtype}; there is {sorted(device.peak)}.")
  if not (parameters > 0 and batch >= 1 and rows >= 1 and context >= 0):  # also catches NaN
    raise Error(
        "parameters must be positive, batch and rows at least 1 and context at least 0; got "
        f"{parameters}, {batch}, {rows}, {context}.")
  if context and attention is None:
    raise Error("a context needs `attention`: the cache has layers, heads and a head size.")
  shape = attention or Attention(0, 0, 0, 0)
  width = jnp.dtype(dtype).itemsize
  weight_bytes = parameters * width
  cache_bytes = batch * context * 2 * shape.layers * shape.kv_heads * shape.head_size * width
  flops_per_row = 2 * parameters + 4 * shape.layers * shape.heads * shape.head_size * context
  peak, read = device.peak[dtype], weight_bytes + cache_bytes
  memory, compute = read / device.bandwidth, batch * rows * flops_per_row / peak
  return Roofline(
      weight_bytes=weight_bytes, cache_bytes=cache_bytes, bytes=read,
      flops=batch * rows * flops_per_row, ridge=peak / device.bandwidth, memory_seconds=memory,
      compute_seconds=compute, seconds=max(memory, compute),
      tokens_per_second=batch / max(memory, batch * flops_per_row / peak),
      free_rows=memory * peak / (batch * flops_per_row))


def _device(device: str | Device) -> Device:
  if isinstance(device, Device):
    return device
  if device not in DEVICES:
    raise Error(
        f"there is no device {device!r}; known are {sorted(DEVICES)}, or pass a Device.")
  return DEVICES[device]
