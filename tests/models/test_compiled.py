"""What the compiler makes of a pass: updates in place, no head that nobody reads, no slow product.

These are the properties that the speed of decoding on a CPU rests on; none of them shows in values.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from specjax.models import layers, native_product, transformer
from tests.models import toys

# Sizes such that the vocabulary shows in the compiled text and the cache dwarfs the activations.
CONFIG = toys.but(vocab_size=1009, hidden_size=48, num_layers=6, head_dim=32, max_length=2048)
TARGET, CAPACITY = transformer.target(CONFIG), 1024
SHAPES = transformer.param_shapes(CONFIG)


def cache_of(batch):
  return jax.eval_shape(lambda: TARGET.init(None, batch, CAPACITY))


def size(tree):
  return sum(a.size * a.dtype.itemsize for a in jax.tree.leaves(tree))


def decoding(params, cache, tokens, lengths):
  """Rounds of greedy scoring in one loop, as a decoder runs them."""
  def round_(state):
    cache, tokens, lengths = state
    output = TARGET.forward(params, cache, tokens, lengths)
    law = jax.nn.log_softmax(output.logits)
    return output.cache, jnp.argmax(law, -1).astype(jnp.int32), lengths + 1

  return lax.while_loop(lambda state: state[2][0] < 100, round_, (cache, tokens, lengths))


def compiled(function, batch, width):
  tokens = jax.ShapeDtypeStruct((batch, width), jnp.int32)
  lengths = jax.ShapeDtypeStruct((batch,), jnp.int32)
  return jax.jit(function, donate_argnums=1).lower(
      SHAPES, cache_of(batch), tokens, lengths).compile()


@pytest.mark.parametrize("batch, width", [(1, 1), (1, 4), (1, 8), (3, 1), (3, 4)])
def test_a_loop_updates_the_cache_in_place(batch, width):
  memory, cache = compiled(decoding, batch, width).memory_analysis(), size(cache_of(batch))
  assert memory.alias_size_in_bytes >= cache
  assert memory.temp_size_in_bytes < cache / 4, "some of the cache is copied in every round"


@pytest.fixture
def without_kernel(monkeypatch):
  monkeypatch.setattr(native_product, "AVAILABLE", False)
  jax.clear_caches()  # traces that hold the kernel
  yield
  jax.clear_caches()


@pytest.mark.parametrize("width", [2, 4, 8])
def test_the_head_multiplies_columns(width, without_kernel):
  """The product for the logits is [V, T]; merged with its transposition it is ten times slower."""
  text = compiled(decoding, 1, width).as_text()
  made = lambda shape: re.findall(rf"f32\[{shape}\]\S* dot\(", text)
  assert made(f"1009,{width}") and not made(f"{width},1009")


def test_a_pass_whose_logits_are_not_read_has_no_head():
  def reading(params, cache, tokens, lengths):
    step = lambda s: (TARGET.forward(params, s[0], tokens, s[1]).cache, s[1] + 64)
    return lax.while_loop(lambda s: s[1][0] < 1024, step, (cache, lengths))

  text = compiled(reading, 1, 64).as_text()
  products = re.findall(r"f32\[([\d,]+)\]\S* dot\(", text)
  assert products and not any("1009" in shape for shape in products)


@pytest.mark.parametrize("columns", range(1, 20))
def test_columns_are_rounded_up_to_widths_that_kernels_like(columns, without_kernel):
  rng = np.random.default_rng(columns)
  weights, x = rng.integers(-9, 9, (7, 5)), rng.integers(-9, 9, (5, columns))
  dtype = jnp.float32
  product = layers.product(jnp.asarray(weights, dtype), jnp.asarray(x, dtype))
  np.testing.assert_array_equal(product, weights @ x)
  text = str(jax.make_jaxpr(layers.product)(jnp.zeros((7, 5)), jnp.zeros((5, columns))))
  width = int(re.search(r"f32\[7,(\d+)\] = dot_general", text)[1])
  assert width == columns <= 4 or (width % 8 == 0 and columns <= width < columns + 8)
