"""The roof of this machine's CPU: how fast it reads memory, and multiplies in float32."""

import jax
import jax.numpy as jnp

from specjax import theory
from specjax.measure import timing

_REPEATS = 5
_READ = (8192, 8192)  # float32, 256 MiB: far more than any cache holds
_MULTIPLIED = 2048


def measure() -> theory.Device:
  """This machine as a `Device`: the best of some runs, for it is a bound that is wanted.

  Bandwidth is that of a matrix times a vector, which is what a decoding pass does and reads with
  all cores; the peak is that of a square product.
  """
  cpu = jax.devices("cpu")[0]
  with jax.default_device(cpu):
    table, vector = jnp.ones(_READ), jnp.ones(_READ[1])
    square = jnp.ones((_MULTIPLIED, _MULTIPLIED))
    product = jax.jit(jnp.matmul)
    times = timing.in_turn(
        dict(read=lambda: timing.seconds_of(product, table, vector),
             multiply=lambda: timing.seconds_of(product, square, square)), _REPEATS)
  return theory.Device(
      "cpu", {"float32": 2 * _MULTIPLIED**3 / min(times["multiply"])},
      table.nbytes / min(times["read"]), "measured on this machine")
