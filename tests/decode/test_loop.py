"""The loop: ends of texts, independence of rows, one compilation for many prompts and numbers."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import decode, drafters, logits, verify
from specjax.decode import loop
from specjax.models import table, transformer
from specjax.models.config import ModelConfig
from specjax.types import PAD, Params
from tests.decode import toys

TARGET = table.target(toys.random_table(0, order=2))
DRAFTER = table.drafter(toys.random_table(1, order=1), 3)
WARM = logits.temperature(0.9)
PROMPTS = np.array([[1, 2, 3, 0], [2, 1, PAD, PAD], [3, PAD, PAD, PAD]])
LENGTHS = np.array([4, 2, 1])
KEY = jax.random.key(5)


def speculative(rule=verify.token(), transform=WARM, drafter=DRAFTER):
  return decode.speculative(TARGET, drafter, rule, transform)


def answers(generation):
  return [list(map(int, row[:n])) for row, n in zip(generation.tokens, generation.lengths)]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 17])
def test_exactly_max_new_tokens(length):
  got = decode.generate(speculative(), KEY, None, PROMPTS, LENGTHS, length)
  assert got.tokens.shape == (3, length)
  np.testing.assert_array_equal(got.lengths, length)
  assert (np.asarray(got.tokens) >= 0).all()
  np.testing.assert_array_equal(got.stats.emitted, length)


def test_shorter_generation_is_a_prefix():
  long = decode.generate(speculative(), KEY, None, PROMPTS, LENGTHS, 30)
  short = decode.generate(speculative(), KEY, None, PROMPTS, LENGTHS, 11)
  np.testing.assert_array_equal(short.tokens, long.tokens[:, :11])


def test_generate_equals_folding_step():
  decoder = speculative()
  whole = decode.generate(decoder, KEY, None, PROMPTS, LENGTHS, 12)
  state = decoder.init(None, PROMPTS, LENGTHS, max_new_tokens=12)
  texts, rounds = [[], [], []], 0
  while not state.done.all():
    state, verdict = jax.jit(type(decoder).step)(decoder, KEY, None, state)
    rounds += 1
    for text, tokens, count in zip(texts, np.asarray(verdict.tokens), np.asarray(verdict.count)):
      assert (tokens[count:] == PAD).all()
      text.extend(map(int, tokens[:count]))
  assert texts == answers(whole)
  assert rounds == whole.stats.rounds.max()
  for row, (length, text) in enumerate(zip(LENGTHS, texts)):
    np.testing.assert_array_equal(state.tokens[row, length:length + 12], text)


def test_stream_equals_generate():
  texts = [[], [], []]
  for played in decode.stream(speculative(), KEY, None, PROMPTS, LENGTHS, 9, eos=(3,)):
    for text, tokens, n in zip(texts, played.verdict.tokens, played.verdict.count):
      text.extend(map(int, tokens[:n]))
  assert texts == answers(decode.generate(speculative(), KEY, None, PROMPTS, LENGTHS, 9, eos=(3,)))


def test_stream_finishes_rows_on_request():
  stream = decode.stream(speculative(), KEY, None, PROMPTS, LENGTHS, 50)
  next(stream)
  played = stream.send(np.array([True, False, True]))
  assert played.verdict.count[0] == played.verdict.count[2] == 0 < played.verdict.count[1]


@pytest.mark.parametrize("rule", [verify.token(), verify.match()], ids=["token", "match"])
def test_eos_at_every_offset_of_a_block(rule):
  """The text up to each token is unchanged when that token is declared to end it."""
  decoder = speculative(rule)
  whole = answers(decode.generate(decoder, KEY, None, PROMPTS, LENGTHS, 24))
  offsets = set()
  for eos in range(toys.VOCAB):
    got = decode.generate(decoder, KEY, None, PROMPTS, LENGTHS, 24, eos=(eos,))
    for text, cut, stats in zip(whole, answers(got), np.asarray(got.stats.lengths)):
      end = text.index(eos) + 1 if eos in text else len(text)
      assert cut == text[:end]
      assert stats @ (1 + np.arange(len(stats))) == end  # nothing after the end is counted
      offsets.add(end)
  assert len(offsets) > 4


def test_eos_ends_a_draft_of_equal_models_at_every_offset():
  """With the target as its own drafter whole blocks are accepted, so EOS falls inside of them."""
  cycle = table.target(20 * jnp.roll(jnp.eye(4), 1, axis=1))  # 0 1 2 3 0 1 ...
  same = table.drafter(20 * jnp.roll(jnp.eye(4), 1, axis=1), 5)
  decoder = decode.speculative(cycle, same, verify.token(), logits.temperature(0.0))
  for start in range(4):
    got = decode.generate(decoder, KEY, None, np.array([[start]]), np.array([1]), 20, eos=(3,))
    expected = list(range(start + 1, 4)) if start < 3 else [0, 1, 2, 3]
    assert answers(got) == [expected]
    assert got.stats.rounds[0] == 1
    assert got.stats.tested.sum() == got.stats.accepted.sum() == len(expected)


def test_context_limit_ends_a_row():
  params = toys.tiny_params(0)
  target = transformer.target(toys.TINY)
  decoder = decode.speculative(target, drafters.ngram(5), verify.token(), logits.temperature(0.0))
  prompt = np.arange(595)[None] % 13
  got = decode.generate(decoder, KEY, params, prompt, np.array([595]), 50)
  assert got.lengths[0] == toys.TINY.max_length - 595
  plain = decode.generate(
      decode.autoregressive(target, logits.temperature(0.0)), KEY, params, prompt,
      np.array([595]), 50)
  np.testing.assert_array_equal(got.tokens, plain.tokens)


def test_rows_do_not_depend_on_the_batch():
  decoder = speculative()
  batch = decode.generate(decoder, KEY, None, PROMPTS, LENGTHS, 20)
  for row in range(3):
    alone = decode.generate(
        decoder, KEY, None, PROMPTS[row:row + 1], LENGTHS[row:row + 1], 20, rows=np.array([row]))
    np.testing.assert_array_equal(alone.tokens[0], batch.tokens[row])
  turned = decode.generate(
      decoder, KEY, None, PROMPTS[::-1], LENGTHS[::-1], 20, rows=np.array([2, 1, 0]))
  np.testing.assert_array_equal(turned.tokens[::-1], batch.tokens)


def test_seeds_and_row_ids_matter():
  prompts, lengths = np.repeat(PROMPTS[:1], 64, axis=0), np.repeat(LENGTHS[:1], 64)
  got = decode.generate(speculative(), KEY, None, prompts, lengths, 8)
  assert len({tuple(text) for text in answers(got)}) > 32
  other = decode.generate(speculative(), jax.random.key(6), None, prompts, lengths, 8)
  assert (np.asarray(got.tokens) != np.asarray(other.tokens)).any()
  again = decode.generate(speculative(), KEY, None, prompts, lengths, 8)
  np.testing.assert_array_equal(got.tokens, again.tokens)


def test_numbers_do_not_retrace():
  prompts, lengths = PROMPTS[:2], LENGTHS[:2]
  run = lambda transform, tokens: decode.generate(
      speculative(transform=transform), KEY, None, prompts, lengths, tokens)
  of = lambda t, k, p: logits.chain(logits.temperature(t), logits.top_k(k), logits.top_p(p))
  run(of(1.0, 3, 0.9), 6)
  before = loop._run._cache_size()
  for numbers in [(0.0, 3, 0.9), (0.7, 1, 0.9), (2.0, 4, 0.5)]:
    run(of(*numbers), 9)
  assert loop._run._cache_size() == before


def test_twenty_prompt_lengths_compile_at_most_three_times():
  before = loop._run._cache_size()
  for length in np.linspace(1, 1900, 20, dtype=int):
    prompt = np.arange(length)[None] % toys.VOCAB
    decode.generate(speculative(), KEY, None, prompt, np.array([length]), 3)
  assert loop._run._cache_size() - before <= 3


@pytest.mark.parametrize("name", ["plain", "ngram", "layer_skip"])
def test_caches_are_updated_in_place(name):
  """Compiled for the default model's shape, the loop needs little beyond parameters and caches."""
  config = ModelConfig(
      vocab_size=49152, hidden_size=576, mlp_size=1536, num_layers=30, num_heads=9,
      num_kv_heads=3, head_dim=64, max_length=8192)
  target = transformer.target(config)
  drafter = {
      "plain": None, "ngram": drafters.ngram(3),
      "layer_skip": drafters.layer_skip(transformer.early_exit(config, 4), 3)}[name]
  decoder = decode.autoregressive(target, WARM) if drafter is None else decode.speculative(
      target, drafter, verify.token(), WARM)
  prepared = loop.prepare(
      target, decoder.room, np.ones((1, 5), int), np.array([5]), 200, (2,), None)
  params = Params(transformer.param_shapes(config))
  compiled = loop._run.lower(decoder, KEY, params, *prepared).compile()
  # Before the loops the zeros of every layer are copies of one.
  loops = compiled.as_text().split("\nENTRY ")[0]
  assert not re.search(r"= f32\[3,512,64\]\S* copy\(", loops)
  memory = compiled.memory_analysis()
  size = lambda tree: sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))
  cache = size(jax.eval_shape(lambda: target.init(None, 1, 512)))
  used = memory.argument_size_in_bytes + memory.temp_size_in_bytes
  assert used <= 1.3 * (size(params) + cache)
  assert memory.temp_size_in_bytes <= 1.25 * cache  # the cache itself is one of the temporaries


def test_nan_raises_and_never_becomes_a_token():
  logits_ = toys.random_table(0, order=1).at[2, 1].set(jnp.nan)
  broken = table.target(logits_)
  for decoder in (decode.autoregressive(broken, WARM),
                  decode.speculative(broken, DRAFTER, verify.token(), WARM)):
    with pytest.raises(FloatingPointError, match="Row 0.*position 1"):
      decode.generate(decoder, KEY, None, np.array([[2]]), np.array([1]), 5)
  broken_drafter = decode.speculative(TARGET, table.drafter(logits_, 2), verify.token(), WARM)
  with pytest.raises(FloatingPointError, match="drafter"):
    decode.generate(broken_drafter, KEY, None, np.array([[2]]), np.array([1]), 5)


def test_laws_after_tokens_that_nobody_drafted_do_not_count():
  """Row 1 has no draft; its pass holds token 0 in place of one, after which there is no law."""
  logits_ = toys.random_table(0, order=1).at[:, 0].set(-jnp.inf).at[0].set(jnp.nan)
  decoder = decode.speculative(
      table.target(logits_), drafters.ngram(3), verify.token(), logits.temperature(0.0))
  got = decode.generate(
      decoder, KEY, None, np.array([[1, 2, 1, 2], [3, 0, 0, 0]]), np.array([4, 1]), 2)
  assert got.stats.drafted[0, 0] > 0 == got.stats.drafted[1, 0]
  assert (np.asarray(got.tokens) > 0).all()


@pytest.mark.parametrize("prompts, lengths, more, message", [
    (np.zeros((1, 3), int), np.array([0]), {}, "row 0 is empty"),
    (np.zeros((1, 3), int), np.array([4]), {}, r"lengths\[0\] = 4 exceeds the 3 columns"),
    (np.array([[1, 4]]), np.array([2]), {}, "outside of the vocabulary of 4"),
    (np.array([[1, PAD]]), np.array([2]), {}, "outside of the vocabulary"),
    (np.zeros(3, int), np.array([3]), {}, r"prompts must be int32\[B, P\]"),
    (np.zeros((1, 3)), np.array([3]), {}, "must hold integers"),
    (np.zeros((0, 3), int), np.zeros(0, int), {}, "at least one prompt"),
    (np.zeros((1, 3), int), np.array([3]), dict(max_new_tokens=0), "max_new_tokens"),
    (np.zeros((1, 3), int), np.array([3]), dict(max_new_tokens=2.5), "max_new_tokens"),
    (np.zeros((1, 3), int), np.array([3]), dict(rows=np.arange(2)), r"rows must be int32\[1\]"),
    (np.zeros((1, 3), int), np.array([3]), dict(rows=np.zeros(1)), r"rows must be int32\[1\]"),
    (np.zeros((1, 3), int), np.array([3]), dict(eos=(2, 4)), r"eos \[2, 4\] .*vocabulary of 4"),
    (np.zeros((1, 3), int), np.array([3]), dict(eos=(PAD,)), r"eos \[-1\]"),
    (np.zeros((1, 3), int), np.array([3]), dict(eos=(1.5,)), r"eos must be tokens int\[E\]"),
    (np.zeros((1, 3), int), np.array([3]), dict(eos=2), r"eos must be tokens int\[E\]"),
])
def test_bad_prompts_are_refused(prompts, lengths, more, message):
  with pytest.raises(ValueError, match=message):
    speculative().init(None, prompts, lengths, **more)


def test_a_prompt_as_long_as_the_context_is_refused():
  decoder = decode.autoregressive(transformer.target(toys.TINY), WARM)
  with pytest.raises(ValueError, match="has 600 tokens, but the context of the model holds 600"):
    decoder.init(toys.tiny_params(0), np.zeros((1, 600), int), np.array([600]))


def test_a_limit_beyond_all_positions_is_the_context():
  prepared = loop.prepare(
      transformer.target(toys.TINY), 4, np.zeros((1, 5), int), np.array([5]), 2**31 - 1, (), None)
  assert prepared[2] == toys.TINY.max_length


@pytest.mark.parametrize("strict", [False, True])
def test_a_pass_at_the_limit_fits_the_cache(strict):
  """JAX would move a write beyond the end back over the text, in silence."""
  room = decode.speculative(TARGET, DRAFTER, verify.token(), WARM, strict).room
  assert room == (decode.decoder.STRICT_WINDOW - 1 if strict else DRAFTER.nodes)
  for length in range(500, 516):  # the last pass begins at the last token and writes `room` more
    prepared = loop.prepare(
        TARGET, room, np.zeros((1, 9), int), np.array([9]), length - 9, (), None)
    assert prepared[0].shape[1] == (512 if length + room <= 512 else 1024)


def test_tables_have_one_vocabulary():
  for make in (table.target, lambda logits_: table.drafter(logits_, 2)):
    with pytest.raises(ValueError, match=r"float\[V\] \* order \+ \[V\], got shape \(3, 4\)"):
      make(jnp.zeros((3, 4)))


def test_trees_need_a_rule_for_trees():
  with pytest.raises(ValueError, match="chains only"):
    speculative(verify.token(), drafter=toys.pairs_drafter(toys.random_table(1, order=1)))
