"""Reading the arguments of a formula: their bounds, and one array namespace for all of them.

Host numbers (Python, NumPy) are computed in NumPy float64, so that a table of a paper can be
checked to the last digit; JAX arrays stay in JAX, so that a formula works under `jit` and `grad`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from specjax.logits import number

_INF = float("inf")
_BOUNDS = {
    "alpha": (0, 1, "a probability in [0, 1]"),
    "gamma": (0, _INF, "a number of drafted tokens, at least 0"),
    "c": (0, _INF, "a cost relative to one target pass, at least 0"),
    "c_hat": (0, _INF, "an operation count relative to the target's, at least 0"),
    "factor": (np.nextafter(0, 1), 1, "a lenience in (0, 1], of which 1 is lossless"),
    "p": (0, 1, "a law of probabilities in [0, 1]"),
    "q": (0, 1, "a law of probabilities in [0, 1]"),
    "tau": (0, _INF, "a number of tokens per target pass, at least 0"),
    "window_cost": (0, _INF, "a cost relative to a single-row pass, at least 0"),
}


def read(**values):
  """(namespace, arrays): NumPy or jax.numpy, and the values as floating arrays of it, in order.

  Raises:
    Error: a value outside of its bounds, or NaN. Values traced by JAX are not looked at.
  """
  for name, value in values.items():
    low, high, meaning = _BOUNDS[name]
    number.check(name, value, lambda x: (x >= low) & (x <= high), meaning)
  traced = [value for value in values.values() if isinstance(value, jax.Array)]
  if not traced:
    return np, [np.asarray(value, np.float64) for value in values.values()]
  floats = [value.dtype for value in traced if jnp.issubdtype(value.dtype, jnp.floating)]
  dtype = max(floats, key=lambda dtype: dtype.itemsize, default=jnp.float32)
  return jnp, [jnp.asarray(value).astype(dtype) for value in values.values()]
