"""The decoder against a float64 reference, and against itself in windows, batches and exits."""


import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax.models import transformer
from specjax.types import PAD
from tests.models import reference, toys
from tests.models.toys import lengths_of, LLAMA, ROUNDING, tokens_of

PARAMS = toys.params_of(LLAMA)
TARGET = transformer.target(LLAMA)


@jax.jit
def forward(target, params, cache, tokens, lengths, depths=None, mask=None):
  return target.forward(params, cache, tokens, lengths, depths, mask)


def fresh(tokens, capacity=24, target=TARGET, params=PARAMS, **kwargs):
  """The pass over whole rows of tokens, from an empty cache."""
  cache = target.init(params, len(tokens), capacity)
  return forward(target, params, cache, tokens, np.zeros(len(tokens), np.int32), **kwargs)


@pytest.mark.parametrize("kind", toys.KINDS)
def test_logits_are_those_of_the_reference(kind):
  config = toys.KINDS[kind]
  params, tokens = toys.params_of(config), tokens_of(2, 13)
  logits = fresh(tokens, target=transformer.target(config), params=params).logits
  assert logits.shape == (2, 13, config.vocab_size) and logits.dtype == jnp.float32
  for row in range(2):
    expected, _ = reference.forward(config, params, tokens[row])
    assert np.abs(expected).max() > 1  # or the tolerance would mean nothing
    np.testing.assert_allclose(logits[row], expected, **ROUNDING)


@pytest.mark.parametrize("widths", [[1] * 13, [2, 3, 1, 5, 2], [7, 6], [9, 4], [12, 1]])
def test_windows_continue_each_other(widths):
  tokens, cache, at, seen = tokens_of(1, 13), TARGET.init(PARAMS, 1, 16), 0, []
  for width in widths:
    output = forward(TARGET, PARAMS, cache, tokens[:, at:at + width], lengths_of(at))
    cache, at = output.cache, at + width
    seen.append(output.logits)
  expected, _ = reference.forward(LLAMA, PARAMS, tokens[0])
  np.testing.assert_allclose(np.concatenate(seen, 1)[0], expected, **ROUNDING)


def test_rows_of_a_batch_have_their_own_lengths():
  """Each row's window starts where that row ends, and stale slots beyond it are never seen."""
  tokens, lengths = tokens_of(4, 17), lengths_of(0, 3, 9, 12)
  stale = fresh(tokens_of(4, 20, seed=1)).cache  # another text in every slot
  cache = forward(TARGET, PARAMS, stale, tokens[:, :12], np.zeros(4, np.int32)).cache
  window = np.stack([tokens[row, at:at + 5] for row, at in enumerate(lengths)])
  logits = forward(TARGET, PARAMS, cache, window, lengths).logits
  for row, at in enumerate(lengths):
    expected, _ = reference.forward(LLAMA, PARAMS, tokens[row, :at + 5])
    np.testing.assert_allclose(logits[row], expected[at:], **ROUNDING)


def test_other_rows_do_not_matter():
  """The same bits whatever the neighbours hold, so a batch never changes a row's text."""
  tokens, lengths = tokens_of(3, 6), lengths_of(2, 0, 5)
  cache = fresh(tokens_of(3, 10, seed=1)).cache
  logits = forward(TARGET, PARAMS, cache, tokens, lengths).logits
  for row in range(3):
    others = np.array([r != row for r in range(3)])
    changed = np.where(others[:, None], tokens_of(3, 6, seed=2), tokens)
    shaken = jax.tree.map(lambda a: jnp.where(others[:, None, None, None], -a, a), cache)
    again = forward(TARGET, PARAMS, shaken, changed, np.where(others, lengths + 1, lengths)).logits
    np.testing.assert_array_equal(again[row], logits[row])


@pytest.mark.parametrize("junk", [PAD, 0, LLAMA.vocab_size, np.iinfo(np.int32).max])
def test_padding_is_harmless(junk):
  """What stands after a row's tokens, and in tokens that see nothing, real tokens do not feel."""
  tokens = tokens_of(1, 8)
  expected = fresh(tokens).logits[:, :5]
  tokens[:, 5:] = junk
  mask = np.tri(8, dtype=bool)[None] & (np.arange(8) < 5)[:, None]
  for kwargs in ({}, dict(mask=mask)):
    output = fresh(tokens, **kwargs)
    np.testing.assert_array_equal(output.logits[:, :5], expected)
    later = forward(TARGET, PARAMS, output.cache, tokens[:, :1], lengths_of(5)).logits
    clean = forward(TARGET, PARAMS, fresh(tokens[:, :5]).cache, tokens[:, :1], lengths_of(5)).logits
    np.testing.assert_allclose(later, clean, **ROUNDING)
    assert np.isfinite(later).all()


def test_a_window_reaches_the_last_slot():
  tokens = tokens_of(1, 9)
  cache = fresh(tokens[:, :6], capacity=9).cache
  logits = forward(TARGET, PARAMS, cache, tokens[:, 6:], lengths_of(6)).logits
  np.testing.assert_allclose(
      logits[0], reference.forward(LLAMA, PARAMS, tokens[0])[0][6:], **ROUNDING)


def test_a_window_wider_than_the_cache_is_refused():
  with pytest.raises(ValueError, match="9 new tokens do not fit a cache of 8 slots"):
    fresh(tokens_of(1, 9), capacity=8)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_early_exit_runs_the_first_layers(layers):
  tokens, exit_ = tokens_of(1, 9), transformer.early_exit(LLAMA, layers)
  cache = jax.tree.map(lambda a: a + 7, TARGET.init(PARAMS, 1, 12))
  output = forward(exit_, PARAMS, cache, tokens, lengths_of(0))
  expected, _ = reference.forward(LLAMA, PARAMS, tokens[0], layers=layers)
  np.testing.assert_allclose(output.logits[0], expected, **ROUNDING)
  full = forward(TARGET, PARAMS, cache, tokens, lengths_of(0)).cache
  for i in range(LLAMA.num_layers):
    jax.tree.map(
        np.testing.assert_array_equal, output.cache[i], full[i] if i < layers else cache[i])
  committed = exit_.commit(full, lengths_of(0), np.array([[1, 3]], np.int32))
  for i in range(LLAMA.num_layers):
    moved = [(a != b).any() for a, b in zip(committed[i], full[i])]
    assert moved == [i < layers] * 2


def test_captured_states_are_counted_like_hidden_states():
  tokens, ids = tokens_of(2, 7), (2, 0, 3)
  target = transformer.target(LLAMA, ids)
  output = fresh(tokens, target=target)
  assert output.features.shape == (2, 7, 3, LLAMA.hidden_size)
  for row in range(2):
    _, states = reference.forward(LLAMA, PARAMS, tokens[row])
    np.testing.assert_allclose(
        output.features[row], states[list(ids)].transpose(1, 0, 2), **ROUNDING)
  plain = fresh(tokens)
  assert plain.features is None
  np.testing.assert_allclose(output.logits, plain.logits, **ROUNDING)


@pytest.mark.parametrize("make, message", [
    (lambda: transformer.target(LLAMA, (0, 4)), r"0\.\.3, got \[4\]"),
    (lambda: transformer.target(LLAMA, (-1,)), r"0\.\.3, got \[-1\]"),
    (lambda: transformer.early_exit(LLAMA, 0), r"1\.\.3, got 0"),
    (lambda: transformer.early_exit(LLAMA, 4), r"1\.\.3, got 4"),
])
def test_layers_that_do_not_exist_are_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_equal_configurations_never_trace_twice():
  traces = []

  @jax.jit
  def scored(target, params, cache, tokens):
    traces.append(1)
    return target.forward(params, cache, tokens, jnp.zeros(1, jnp.int32)).logits

  for _ in range(2):
    target = transformer.target(toys.but(vocab_size=LLAMA.vocab_size), captures=(1,))
    scored(target, PARAMS, target.init(PARAMS, 1, 8), tokens_of(1, 3))
  assert len(traces) == 1
  assert transformer.target(LLAMA) is transformer.target(toys.but(), captures=())
  assert transformer.target(LLAMA) is not transformer.target(LLAMA, (1,))


def test_bfloat16_follows_float32():
  """8 bits of mantissa: a rounding is 1/256 of the number, logits here are a few units large."""
  config = toys.but(dtype="bfloat16", qkv_bias=True, qk_norm=True, tied_head=False)
  params, tokens = toys.params_of(config), tokens_of(2, 9)
  assert {a.dtype.name for a in jax.tree.leaves(params)} == {"bfloat16"}
  output = fresh(tokens, target=transformer.target(config, (1,)), params=params)
  assert output.logits.dtype == jnp.float32 and output.features.dtype == jnp.bfloat16
  assert {a.dtype.name for a in jax.tree.leaves(output.cache)} == {"bfloat16"}
  for row in range(2):
    expected, _ = reference.forward(config, params, tokens[row])
    error = np.abs(output.logits[row] - expected)
    assert error.mean() < 0.03 * np.abs(expected).mean() and error.max() < 0.5


@pytest.mark.parametrize("kind", toys.KINDS)
def test_layout_of_the_parameters(kind):
  c = toys.KINDS[kind]
  qkv = c.num_kv_heads, c.num_heads // c.num_kv_heads + 2, c.head_dim
  layer = dict(attn_norm=(24,), qkv=(*qkv, 24), out=(24, c.num_heads * c.head_dim),
               mlp_norm=(24,), gate_up=(2, 40, 24), down=(24, 40))
  layer |= dict(qkv_bias=qkv) if c.qkv_bias else {}
  layer |= dict(out_bias=(24,)) if c.out_bias else {}
  layer |= dict(q_norm=(c.head_dim,), k_norm=(c.head_dim,)) if c.qk_norm else {}
  expected = {f"layer_{i}": layer for i in range(3)}
  expected |= dict(embedding=(53, 24), final_norm=(24,))
  expected |= {} if c.tied_head else dict(head=(53, 24))
  shapes = transformer.param_shapes(c)
  assert jax.tree.map(lambda s: s.shape, shapes) == expected
  drawn = transformer.init_params(c, jax.random.key(0))
  assert jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), drawn) == shapes


def test_initial_activations_keep_their_size():
  """Matrices are [out, in]: scaled by the square root of the inputs, whatever the outputs."""
  drawn = transformer.init_params(toys.but(hidden_size=64, mlp_size=256), jax.random.key(0))
  for name, inputs in dict(qkv=64, out=32, gate_up=64, down=256).items():
    assert np.std(drawn["layer_1"][name]) * inputs**0.5 == pytest.approx(1, rel=0.1)


def test_gradients_reach_every_parameter():
  """A drafter that is itself such a decoder is trained through `forward`."""
  config = toys.but(qkv_bias=True, out_bias=True, qk_norm=True, tied_head=False)
  params, tokens, target = toys.params_of(config), tokens_of(2, 6), transformer.target(config)

  @jax.jit
  def loss(params):
    cache = target.init(params, 2, 6)
    logits = target.forward(
        params, cache, jnp.asarray(tokens), jnp.zeros(2, jnp.int32)).logits
    return jnp.mean(jax.nn.log_softmax(logits)[..., 0])

  gradient = jax.jit(jax.grad(loss))(params)
  assert all(np.isfinite(g).all() and np.abs(g).max() > 0 for g in jax.tree.leaves(gradient))
  direction = toys.params_of(config, seed=5)
  step = lambda size: loss(jax.tree.map(lambda p, d: p + size * d, params, direction))
  slope = sum(np.vdot(g, d) for g, d in zip(*map(jax.tree.leaves, (gradient, direction))))
  # Central difference: error of order size**2 = 1e-6, plus float32 rounding 1e-7 / size.
  assert (step(1e-3) - step(-1e-3)) / 2e-3 == pytest.approx(slope, rel=0.01, abs=1e-3)
