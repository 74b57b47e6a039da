"""A tree that grows over the cache in several passes is scored as in one pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax.models import table, transformer
from specjax.types import Error
from tests.models import toys
from tests.models.toys import lengths_of, LLAMA, ROUNDING, tokens_of

VOCAB = LLAMA.vocab_size
PARAMS = toys.params_of(LLAMA)
TABLE = table.target(jnp.asarray(np.random.default_rng(0).normal(size=(VOCAB,) * 3)))
TARGETS = {"transformer": transformer.target(LLAMA), "table": TABLE}
TEXT = tokens_of(2, 12, seed=3)
LENGTHS = lengths_of(5, 9)
# Slot s's parent among the slots; the root is slot 0. Levels are slots 1-2, 3-6, 7.
PARENTS = np.array([[-1, 0, 0, 1, 1, 2, 2, 4], [-1, 0, 0, 2, 2, 2, 1, 6]])
LEVELS = ((0, 1), (1, 3), (3, 7), (7, 8))
SLOTS, CAPACITY = 8, 32
WINDOW = tokens_of(2, SLOTS, seed=4)


def ancestors():
  """mask bool[B, 8, 8], every slot with its own ancestors and itself; depths int32[B, 8]."""
  mask = np.zeros((2, SLOTS, SLOTS), bool)
  for row, parents in enumerate(PARENTS):
    for slot, parent in enumerate(parents):
      mask[row, slot] = mask[row, parent] if slot else False
      mask[row, slot, slot] = True
  return mask, mask.sum(-1, dtype=np.int32) - 1


MASK, DEPTHS = ancestors()


@jax.jit
def forward(target, cache, tokens, lengths, depths=None, mask=None):
  return target.forward(PARAMS, cache, tokens, lengths, depths, mask)


def text_cache(target):
  cache = target.init(PARAMS, 2, CAPACITY)
  return forward(target, cache, TEXT, np.zeros(2, np.int32)).cache


def in_one_pass(target, mask=MASK):
  return np.asarray(forward(target, text_cache(target), WINDOW, LENGTHS, DEPTHS, mask).logits)


def grown(target, width=None, mask=MASK):
  """Logits of all slots from a pass for each level, padded to `width` tokens if that is given."""
  cache, logits = text_cache(target), []
  for start, end in LEVELS:
    extra = (width or end - start) - (end - start)
    pad = lambda a: np.pad(a[:, start:end], [(0, 0), (0, extra)] + [(0, 0)] * (a.ndim - 2))
    seen = np.pad(mask[:, start:end, :end], ((0, 0), (0, extra), (0, extra)))
    output = forward(target, cache, pad(WINDOW), LENGTHS, pad(DEPTHS), seen)
    cache = output.cache
    logits.append(output.logits[:, :end - start])
  return np.concatenate(logits, 1)


@pytest.mark.parametrize("name", TARGETS)
def test_passes_of_one_width_give_the_bits_of_one_pass(name):
  np.testing.assert_array_equal(grown(TARGETS[name], width=SLOTS), in_one_pass(TARGETS[name]))


@pytest.mark.parametrize("name", TARGETS)
def test_passes_of_the_levels_widths_give_its_logits(name):
  """A compiled product of another width may sum in another order; a table only looks up."""
  rounding = ROUNDING if name == "transformer" else dict(rtol=0, atol=0)
  np.testing.assert_allclose(grown(TARGETS[name]), in_one_pass(TARGETS[name]), **rounding)


@pytest.mark.parametrize("name", TARGETS)
def test_a_cousin_that_is_seen_shows(name):
  mask = MASK.copy()
  mask[:, 7, 5] = True  # slot 7 hangs below 1, slot 5 below 2
  target = TARGETS[name]
  for logits in (in_one_pass(target, mask), grown(target, mask=mask)):
    apart = np.abs(logits - in_one_pass(target)).max((0, 2))
    assert apart[7] > 0.01 and apart[:7].max() <= ROUNDING["atol"]


@pytest.mark.parametrize("name", TARGETS)
def test_a_committed_path_of_a_grown_tree_continues(name):
  """The entries of nodes that grew stand where commit looks for them."""
  target, cache = TARGETS[name], text_cache(TARGETS[name])
  for start, end in LEVELS:
    cache = forward(target, cache, WINDOW[:, start:end], LENGTHS, DEPTHS[:, start:end],
                    MASK[:, start:end, :end]).cache
  paths = np.array([[0, 3, 6], [0, 5, 6]], np.int32)  # nodes: slots 1, 4, 7 and 1, 6, 7
  cache = target.commit(cache, LENGTHS, paths)
  following = tokens_of(2, 2, seed=5)
  logits = forward(target, cache, following, LENGTHS + 4).logits
  for row in range(2):
    text = np.concatenate([
        TEXT[row, :LENGTHS[row]], WINDOW[row, [0, *paths[row] + 1]], following[row]])[None]
    cache = target.init(PARAMS, 1, CAPACITY)
    expected = forward(target, cache, text, lengths_of(0)).logits
    np.testing.assert_allclose(logits[row], expected[0, -2:], **ROUNDING)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("mask, depths, message", [
    (MASK[:, :, :7], DEPTHS, r"\(2, 8\) must be bool\[2, 8, W\] with W >= 8 .*bool\[2, 8, 7\]"),
    (MASK[:, :7], DEPTHS, r"got bool\[2, 7, 8\]"),
    (MASK[:1], DEPTHS, r"got bool\[1, 8, 8\]"),
    (MASK[0], DEPTHS, r"got bool\[8, 8\]"),
    (MASK.astype(np.float32), DEPTHS, r"got float32\[2, 8, 8\]"),
    (np.zeros((2, 8, 33), bool), DEPTHS, "8 new tokens behind 25 earlier nodes do not fit"),
    (MASK, DEPTHS[:, :7], r"depths .*\(2, 8\).*got \(2, 7\)")])
def test_a_window_of_another_shape_is_refused(name, mask, depths, message):
  target = TARGETS[name]
  with pytest.raises(Error, match=message):
    target.forward(PARAMS, text_cache(target), WINDOW, LENGTHS, depths, mask)
