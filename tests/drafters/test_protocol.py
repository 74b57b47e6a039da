"""What every drafter promises, whatever it drafts with; see `specjax.types.Drafter`.

The text holds repetitions, so that those who copy find something to copy.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import decode, keys, logits, verify
from specjax.logits import law
from specjax.trees import accepted, masks
from specjax.types import Context, DETERMINISTIC, PAD, ROOT, SIBLINGS, Verdict
from tests.drafters import cases

CAPACITY = 512
TEXT = np.array([
    [1, 2, 3, 1, 2, 0, 1, 2, 3, 1, 2],
    [3, 1, 0, 2, 3, 1, 0, 2, 3, 1, 0],
    [2, 1, 1, 1, 1, 1, 1] + [PAD] * 4], np.int32)
LENGTHS = np.array([11, 9, 7], np.int32)
KEY = jax.random.key(11)
WARM = logits.chain(logits.temperature(1.0))

every_drafter = pytest.mark.parametrize("name", cases.ALL)


def text_of(rows) -> tuple[np.ndarray, np.ndarray]:
  """The text of some rows, padded to the capacity; PAD beyond their lengths."""
  tokens = np.full((len(rows), CAPACITY), PAD, np.int32)
  for place, row in enumerate(rows):
    tokens[place, :LENGTHS[row]] = TEXT[row, :LENGTHS[row]]
  return tokens, LENGTHS[list(rows)]


def context_of(cache, tokens, lengths) -> Context:
  def draft_law(scores, drafted):
    del drafted
    return law.log_law(scores, WARM)

  return Context(jnp.asarray(tokens), jnp.asarray(lengths), cache, draft_law)


@jax.jit
def read_chunk(case, cache, state, new, start, count):
  output = case.target.forward(case.params.target, cache, jnp.maximum(new[:, :-1], 0), start)
  return output.cache, case.drafter.read(case.params, state, new, output.features, start, count)


def read(case, tokens, lengths, chunk: int):
  """The target's cache and the drafter's state after the text but for its last token."""
  batch = len(lengths)
  cache = case.target.init(case.params.target, batch, CAPACITY)
  state = case.drafter.init(case.params, batch, CAPACITY)
  for at in range(0, int(lengths.max()) - 1, chunk):
    count = np.clip(lengths - 1 - at, 0, chunk)
    cache, state = read_chunk(
        case, cache, state, tokens[:, at:at + chunk + 1], np.full(batch, at, np.int32), count)
  return cache, state


@jax.jit
def _propose(case, cache, state, tokens, lengths, rows, round_):
  drawn_with = keys.draft(KEY, rows, round_, case.drafter.depth)
  return case.drafter.propose(drawn_with, case.params, state, context_of(cache, tokens, lengths))


def propose(case, cache, state, tokens, lengths, rows, round_: int = 0):
  return _propose(case, cache, state, tokens, lengths, np.array(rows), np.int32(round_))


@functools.cache
def drafted(name: str, chunk: int = 4, rows: tuple[int, ...] = (0, 1, 2), round_: int = 0):
  """(cache, state, proposal) of the rows whose ids are given."""
  case = cases.ALL[name]
  tokens, lengths = text_of(rows)
  cache, state = read(case, tokens, lengths, chunk)
  return cache, state, propose(case, cache, state, tokens, lengths, rows, round_)


def same_drafts(one, other, places=slice(None)):
  """The nodes agree, and so do the laws up to the rounding of passes of other shapes."""
  valid = np.asarray(one.valid)
  np.testing.assert_array_equal(valid, np.asarray(other.valid)[places])
  for mine, theirs in ((one.tokens, other.tokens), (one.parents, other.parents)):
    np.testing.assert_array_equal(np.asarray(mine)[valid], np.asarray(theirs)[places][valid])
  assert (one.log_q is None) == (other.log_q is None)
  if one.log_q is not None:
    np.testing.assert_allclose(
        np.exp(np.asarray(one.log_q)[valid]), np.exp(np.asarray(other.log_q)[places][valid]),
        rtol=0, atol=1e-4)


@every_drafter
def test_the_draft_has_its_shapes(name):
  case, (_, _, proposal) = cases.ALL[name], drafted(name)
  draft, nodes, vocab = proposal.draft, case.drafter.nodes, case.target.vocab_size
  for array, dtype in ((draft.tokens, "int32"), (draft.parents, "int32"), (draft.valid, "bool")):
    assert array.shape == (3, nodes) and array.dtype == dtype
  assert case.drafter.siblings in SIBLINGS
  assert (draft.log_q is None) == (case.drafter.siblings == DETERMINISTIC)
  if draft.log_q is not None:
    assert draft.log_q.shape == (3, nodes, vocab)
  assert case.drafter.abstains or draft.valid[:, 0].all()
  assert draft.valid.any(), "no row has a draft: the other tests would see nothing"


@every_drafter
def test_parents_come_before_children_and_no_path_is_too_long(name):
  case, (_, _, proposal) = cases.ALL[name], drafted(name)
  parents, valid = np.asarray(proposal.draft.parents), np.asarray(proposal.draft.valid)
  assert (parents < np.arange(case.drafter.nodes)).all() and (parents >= ROOT).all()
  depths = np.asarray(jax.vmap(masks.window_depths)(proposal.draft.parents))
  assert depths.max() == case.drafter.depth
  above = np.take_along_axis(np.pad(valid, ((0, 0), (1, 0)), constant_values=True), parents + 1, 1)
  assert (above | ~valid).all(), "a node below an invalid one is valid"


@every_drafter
def test_every_token_was_drawn_from_a_law_that_has_it(name):
  case, (_, _, proposal) = cases.ALL[name], drafted(name)
  draft = proposal.draft
  tokens, valid = np.asarray(draft.tokens), np.asarray(draft.valid)
  assert ((tokens >= 0) & (tokens < case.target.vocab_size))[valid].all()
  if draft.log_q is not None:
    probability = np.exp(np.asarray(draft.log_q, np.float64))
    np.testing.assert_allclose(probability.sum(-1)[valid], 1, rtol=0, atol=1e-5)
    assert (np.take_along_axis(probability, tokens.clip(0)[..., None], -1)[..., 0] > 0)[valid].all()


@every_drafter
def test_all_randomness_is_in_the_keys(name):
  """Equal keys give the equal draft; of twenty rounds with other keys one at least is another."""
  case, (cache, state, proposal) = cases.ALL[name], drafted(name)
  tokens, lengths = text_of((0, 1, 2))
  again = propose(case, cache, state, tokens, lengths, (0, 1, 2))
  np.testing.assert_array_equal(proposal.draft.tokens, again.draft.tokens)
  others = [
      propose(case, cache, state, tokens, lengths, (0, 1, 2), round_) for round_ in range(1, 21)]
  moved = any((other.draft.tokens != proposal.draft.tokens).any() for other in others)
  assert moved == (case.drafter.siblings != DETERMINISTIC)


@every_drafter
def test_a_prompt_may_come_in_chunks_of_any_width(name):
  *_, one = drafted(name, chunk=4)
  *_, other = drafted(name, chunk=16)
  same_drafts(one.draft, other.draft)


@every_drafter
def test_rows_of_a_batch_do_not_look_at_each_other(name):
  *_, together = drafted(name)
  for row in range(3):
    *_, alone = drafted(name, rows=(row,))
    same_drafts(alone.draft, together.draft, slice(row, row + 1))


@every_drafter
def test_a_round_that_kept_nothing_changes_nothing(name):
  """What a finished row is told: the draft after it is the one before it."""
  case, (_, _, proposal) = cases.ALL[name], drafted(name)
  tokens, lengths = text_of((0, 1, 2))
  nodes, depth = case.drafter.nodes, case.drafter.depth
  nothing = Verdict(
      tokens=jnp.full((3, depth + 1), PAD), count=jnp.zeros(3, jnp.int32),
      path=jnp.full((3, depth), PAD), tested=jnp.zeros((3, nodes), bool),
      accepted=jnp.zeros((3, nodes), bool))
  features = None
  if case.drafter.captures:
    hidden = jax.eval_shape(
        case.target.forward, case.params.target, proposal.cache,
        jnp.zeros((3, nodes + 1), jnp.int32), jnp.asarray(lengths)).features
    features = jnp.full(hidden.shape, 7, hidden.dtype)
  state = case.drafter.observe(
      case.params, proposal.state, nothing, features,
      context_of(proposal.cache, tokens, lengths))
  again = propose(case, proposal.cache, state, tokens, lengths, (0, 1, 2))
  same_drafts(proposal.draft, again.draft)


@every_drafter
def test_the_text_is_that_of_plain_decoding_at_temperature_zero(name):
  """Over prompts of different lengths, rows that end early, and acceptance of every length."""
  case = cases.ALL[name]
  rule = verify.match()
  cold = logits.temperature(0.0)
  prompts = np.where(TEXT == PAD, 0, TEXT)
  plain = decode.generate(
      decode.autoregressive(case.target, cold), KEY, case.params, prompts, LENGTHS, 30, eos=(0,))
  got = decode.generate(
      decode.speculative(case.target, case.drafter, rule, cold), KEY, case.params, prompts,
      LENGTHS, 30, eos=(0,))
  np.testing.assert_array_equal(got.tokens, plain.tokens)


def test_the_accepted_path_of_a_tree_is_read_as_text():
  """Features lie in node order; those of a path that jumps over nodes are gathered with it."""
  verdict = Verdict(
      tokens=jnp.array([[7, 8, 9], [4, PAD, PAD], [PAD] * 3]), count=jnp.array([3, 1, 0]),
      path=jnp.array([[1, 3], [PAD, PAD], [PAD, PAD]]), tested=None, accepted=None)
  tokens = jnp.array([[5, 6, 7, 8, 9], [3, 4, PAD, PAD, PAD], [1, 2, PAD, PAD, PAD]])
  features = jnp.arange(3 * 5.0).reshape(3, 5, 1, 1)
  read_ = accepted.read_of(
      verdict, features, Context(tokens, jnp.array([5, 2, 2]), None, None))
  np.testing.assert_array_equal(read_.start, [1, 0, 1])
  np.testing.assert_array_equal(read_.count, [3, 1, 0])
  np.testing.assert_array_equal(read_.tokens[:2], [[6, 7, 8, 9], [3, 4, PAD, PAD]])
  np.testing.assert_array_equal(read_.features[0, :, 0, 0], [0, 2, 4])  # root, node 1, node 3
  np.testing.assert_array_equal(read_.features[1, 0, 0, 0], 5)
