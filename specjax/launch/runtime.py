"""Process-wide settings of JAX: the random bits, the arithmetic and the compilation cache.

All of them decide about reproducibility, so they are set in one place, and `record` writes them
down.
"""

import os
import pathlib

import jax

from specjax.loading import default

# Run-to-run determinism: excludes ops without a fixed order of additions, and autotuning, which may
# choose another kernel in the next process. XLA reads it on every platform and obeys it on GPU.
_DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


def configure(cache: pathlib.Path | None = None) -> None:
  """Pins what results depend on; must run before the first array is made.

  Args:
    cache: the folder of compiled programs; `jax` in the cache folder of specjax if not given.
  """
  given = os.environ.get("XLA_FLAGS", "")
  if "xla_gpu_deterministic_ops" not in given:
    os.environ["XLA_FLAGS"] = f"{given} {_DETERMINISTIC}".strip()
  jax.config.update("jax_default_prng_impl", "threefry2x32")
  jax.config.update("jax_threefry_partitionable", True)
  # The default would let a GPU multiply float32 matrices in TF32, 10 bits of mantissa.
  jax.config.update("jax_default_matmul_precision", "highest")
  jax.config.update("jax_compilation_cache_dir", str(cache or default.cache_directory() / "jax"))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
