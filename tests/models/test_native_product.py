"""The optional kernel: the same bits at every width, right under every transformation, optional."""

import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from specjax.models import layers, native_product, transformer
from tests.models import toys
from tests.models.toys import lengths_of, LLAMA, ROUNDING, tokens_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
needs_kernel = pytest.mark.skipif(
    not native_product.AVAILABLE, reason="specjax was installed without a C++ compiler")
# (out, in): below and above the size for one thread, multiples of the lanes and not.
SIZES = ((1, 1), (7, 5), (3, 17), (64, 64), (333, 1537), (960, 576), (2051, 97))


def operands(size, columns=8, seed=0):
  rng = np.random.default_rng(seed)
  draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)
  return draw(*size), draw(size[1], columns)


@pytest.fixture
def without_kernel(monkeypatch):
  monkeypatch.setattr(native_product, "AVAILABLE", False)


@needs_kernel
@pytest.mark.parametrize("size", SIZES)
def test_every_number_of_columns_gives_the_same_bits(size):
  weights, x = operands(size)
  product = jax.jit(native_product.product)
  whole = np.asarray(product(weights, x))
  exact = np.asarray(weights, np.float64) @ np.asarray(x, np.float64)
  bound = 2**-23 * size[1] * (np.abs(weights) @ np.abs(x)).max()
  np.testing.assert_allclose(whole, exact, rtol=0, atol=bound)
  for columns in range(1, 9):
    np.testing.assert_array_equal(product(weights, x[:, :columns]), whole[:, :columns])
    np.testing.assert_array_equal(product(weights, x[:, 8 - columns:]), whole[:, 8 - columns:])


@needs_kernel
def test_what_lies_behind_the_weights_does_not_matter():
  """97 is no multiple of the lanes: the last ones of a row must not read the next row."""
  weights, x = operands((64, 97))
  expected = np.asarray(layers.product(weights, x))
  poisoned = layers.product(weights.at[1::2].set(jnp.nan), x)
  np.testing.assert_array_equal(poisoned[::2], expected[::2])
  assert np.isnan(poisoned[1::2]).all()


@needs_kernel
def test_leading_axes_are_those_of_the_weights():
  weights, x = operands((24, 16), 3)
  product = layers.product(weights.reshape(2, 3, 4, 16), x)
  np.testing.assert_array_equal(product, layers.product(weights, x).reshape(2, 3, 4, 3))


@needs_kernel
def test_it_is_the_kernel_that_multiplies_two_to_eight_columns():
  text = lambda columns, dtype=jnp.float32: jax.jit(layers.product).lower(
      jnp.zeros((24, 16), dtype), jnp.zeros((16, columns), dtype)).as_text()
  assert all("specjax_product" in text(columns) for columns in range(2, 9))
  assert not any("dot_general" in text(columns) for columns in range(2, 9))
  assert "specjax_product" not in text(1) + text(9) + text(4, jnp.bfloat16) + text(64)


@needs_kernel
def test_loops_and_batches():
  weights, x = operands((16, 16), 2)
  step = lambda x: layers.product(weights, x) / 4
  looped = jax.jit(lambda x: lax.fori_loop(0, 3, lambda _, x: step(x), x))(x)
  np.testing.assert_array_equal(looped, step(step(step(x))))
  stack = jnp.stack([x, -x, 2 * x])
  expected = np.stack([layers.product(weights, one) for one in stack])
  over_x = jax.vmap(layers.product, (None, 0))(weights, stack)
  over_both = jax.jit(jax.vmap(layers.product))(jnp.stack([weights] * 3), stack)
  np.testing.assert_array_equal(over_x, expected)
  np.testing.assert_array_equal(over_both, expected)


@needs_kernel
def test_derivatives_are_those_of_xla():
  weights, x = operands((12, 20), 3)
  loss = lambda product: lambda *args: jnp.sin(product(*args)).sum()
  ours, theirs = (
      jax.jit(jax.grad(loss(product), (0, 1)))(weights, x)
      for product in (layers.product, lambda w, x: w @ x))
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-4), ours, theirs)
  hessian = lambda product: jax.jvp(jax.grad(loss(product), 1), (weights, x), (weights, x))[1]
  np.testing.assert_allclose(
      hessian(layers.product), hessian(lambda w, x: w @ x), rtol=0, atol=1e-3)


@needs_kernel
def test_with_64_bit_numbers_switched_on():
  weights, x = operands((64, 48), 3)
  expected = layers.product(weights, x)
  with jax.enable_x64(True):
    product = jax.jit(layers.product)(weights, x)
    wide = layers.product(weights.astype(jnp.float64), x.astype(jnp.float64))
  np.testing.assert_array_equal(product, expected)
  np.testing.assert_allclose(wide, expected, rtol=0, atol=1e-4)


@needs_kernel
@pytest.mark.parametrize("shapes", [((8, 4), (4, 9)), ((8, 4), (5, 2)), ((8,), (4, 2))])
def test_the_handler_refuses_other_shapes(shapes):
  weights, x = (jnp.zeros(shape, jnp.float32) for shape in shapes)
  call = jax.ffi.ffi_call(
      "specjax_product", jax.ShapeDtypeStruct((8, x.shape[1]), jnp.float32))
  with pytest.raises(Exception, match=r"\[O, I\] times \[I, T\] with T of 1 to 8"):
    jax.block_until_ready(call(weights, x))


@needs_kernel
def test_a_pass_of_the_decoder_agrees(monkeypatch):
  """The same logits as with XLA's products, up to rounding, in windows of every width."""
  params, tokens = toys.params_of(LLAMA), tokens_of(1, 8)
  scored = {}
  for kernel in (True, False):
    monkeypatch.setattr(native_product, "AVAILABLE", kernel)
    target = transformer.target(LLAMA)
    for width in range(1, 9):
      run = jax.jit(lambda cache, tokens: target.forward(params, cache, tokens, lengths_of(0)))
      output = run(target.init(params, 1, 16), tokens[:, :width])
      scored[kernel, width] = np.asarray(output.logits[0])
  for width in range(1, 9):
    np.testing.assert_allclose(scored[True, width], scored[False, width], **ROUNDING)


def test_without_the_kernel_xla_multiplies(without_kernel):
  product = lambda weights, x: layers.product(weights, x)  # a new function, so a new trace
  text = jax.jit(product).lower(jnp.zeros((24, 16)), jnp.zeros((16, 4))).as_text()
  assert "dot_general" in text and "specjax_product" not in text
  weights, x = operands((24, 16))
  np.testing.assert_allclose(layers.product(weights, x), weights @ x, rtol=0, atol=1e-5)


def test_several_devices_share_xla_products(monkeypatch):
  monkeypatch.setattr(native_product, "AVAILABLE", True)
  monkeypatch.setattr(jax, "device_count", lambda backend: 4)
  assert not native_product.serves(*operands((24, 16)))


SCRIPT = """
import os, sys
if sys.argv[2] == "one":
  os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import jax, jax.numpy as jnp, numpy as np, zlib
from specjax.models import layers
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append("cache_hits" in event))
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
rng = np.random.default_rng(0)
weights = jnp.asarray(rng.normal(size=(960, 576)), jnp.float32)
x = jnp.asarray(rng.normal(size=(576, 8)), jnp.float32)
y = jax.jit(layers.product)(weights, x)
print(any(hits), zlib.crc32(np.asarray(y).tobytes()))
"""


@needs_kernel
def test_one_thread_and_a_cached_program_give_the_same_bits(tmp_path):
  def run(threads):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), threads], cwd=ROOT, check=True,
        capture_output=True, text=True, timeout=600, env={
            **os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)})
    return done.stdout.split()

  fresh, cached, alone = run("all"), run("all"), run("one")
  assert [fresh[0], cached[0]] == ["False", "True"]
  assert fresh[1] == cached[1] == alone[1]


def test_setup_goes_on_without_a_compiler(tmp_path):
  done = subprocess.run(
      [sys.executable, "setup.py", "build_ext", "--build-lib", str(tmp_path / "lib"),
       "--build-temp", str(tmp_path / "temp")], cwd=ROOT, capture_output=True, text=True,
      timeout=600, env={**os.environ, "CC": "no-such-compiler", "CXX": "no-such-compiler"})
  assert done.returncode == 0, done.stderr
  assert not list(tmp_path.rglob("*.so"))
