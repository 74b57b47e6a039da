"""Published drafters inside the decoder, against the authors' drafts and against plain decoding."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import decode, loading, logits, verify
from specjax.types import Params, Verdict
from tests.models.heads import goldens

COLD, KEY = logits.temperature(0.0), jax.random.key(5)
LLAMA = ("eagle1", "eagle3_official", "eagle3_specforge", "eagle3_specforge_31",
         "eagle3_speculators", "eagle3_speculators_31", "eagle3_speculators_nbfc", "medusa")
NAMES = (*LLAMA, "dflash", "dflash_speculators", "dspark", "mtp_qwen3")


@pytest.fixture(autouse=True, scope="module")
def compile_quickly():
  """No optimisation: nothing here is about rounding, and compiling is nearly all that is done."""
  jax.config.update("jax_disable_most_optimizations", True)
  yield
  jax.config.update("jax_disable_most_optimizations", False)


@functools.cache
def model(name):
  return loading.load(goldens.FOLDER / f"target_{name}")


@functools.cache
def load(name):
  target = model("llama" if name in LLAMA else "qwen3")
  return target, loading.load_drafter(goldens.FOLDER / name, target)


def drafts_of(name):
  """The authors' first draft at temperature 0, in the target's ids."""
  want = goldens.expected(name)
  if name == "eagle3_specforge_31":
    return want["chain_served_token_ids"]
  for key in ("chain_token_ids", "draft_token_ids", "draft_ids", "head_top1_ids"):
    if key in want:
      return want[key]


@functools.cache
def decoder_of(name, gamma=None, rule=verify.greedy(), transform=COLD):
  target, loaded = load(name)
  drafter = loaded.make(len(drafts_of(name)) if gamma is None else gamma)
  return decode.speculative(target.target(loaded.captures), drafter, rule, transform)


def params_of(name):
  target, loaded = load(name)
  return Params(target.params, loaded.params)


def prompt_of(name):
  """The prompt of the goldens, whose last token the target has not read."""
  want = goldens.expected(name)
  return np.append(want["input_ids"], want["bonus_id"])[None]


def begin(name, prompt):
  return decoder_of(name).init(params_of(name), prompt, np.array([prompt.shape[1]]))


@pytest.mark.parametrize("name", NAMES)
def test_the_first_draft_is_the_authors(name):
  decoder, prompt = decoder_of(name), prompt_of(name)
  proposal = decoder.propose(KEY, params_of(name), begin(name, prompt))
  np.testing.assert_array_equal(proposal.draft.tokens[0], drafts_of(name))
  assert np.isfinite(np.asarray(proposal.draft.log_q)).any(-1).all()


ROUND2 = {"eagle3_official": "round2_chain_token_ids", "dflash": "round2_draft_ids"}


@pytest.mark.parametrize("name", ROUND2)
def test_the_draft_after_a_partial_acceptance_is_the_authors(name):
  want, decoder, params = goldens.expected(name), decoder_of(name), params_of(name)
  state = begin(name, prompt_of(name))
  proposal = decoder.propose(KEY, params, state)
  depth = decoder.drafter.depth
  window = jnp.concatenate([state.tokens[:, 20:21], proposal.draft.tokens], 1)
  output = decoder.target.forward(params.target, proposal.cache, window, state.lengths - 1)
  extra = want["round2_all_ids"][-1]  # two drafts are accepted, whatever the target says
  tokens = jnp.full((1, depth + 1), -1).at[0, :2].set(proposal.draft.tokens[0, :2])
  path = jnp.full((1, depth), -1).at[0, :2].set(jnp.arange(2))
  verdict = Verdict(tokens.at[0, 2].set(extra), jnp.array([3]), path, None, None)
  state = state._replace(
      tokens=state.tokens.at[:, 21:24].set(verdict.tokens[:, :3]), lengths=state.lengths + 3,
      cache=output.cache)
  drafter = decoder.drafter.observe(
      params, proposal.state, verdict, output.features, decoder._context(state))
  again = decoder.propose(KEY, params, state._replace(drafter=drafter))
  np.testing.assert_array_equal(again.draft.tokens[0], want[ROUND2[name]])


def ragged(name):
  """Prompts of one token, of two, of all that the goldens have, and of seven."""
  text = prompt_of(name)[0]
  lengths = np.array([1, 2, 21, 7])
  prompts = np.zeros((4, 21), int)
  for row, length in enumerate(lengths):
    prompts[row, :length] = text[:length]
  return prompts, lengths


TRANSFORMS = {"cold": (verify.greedy(), COLD), "gumbel": (verify.gumbel(), logits.temperature(0.8))}


@functools.cache
def plain(target, kind):
  """The text of plain decoding by a target."""
  prompts, lengths = ragged("eagle1" if target == "llama" else "dflash")
  decoder = decode.autoregressive(model(target).target(), TRANSFORMS[kind][1])
  return decode.generate(decoder, KEY, model(target).params, prompts, lengths, 12).tokens


@pytest.mark.parametrize("name, kind", [
    ("eagle3_official", "cold"), ("eagle1", "gumbel"), ("medusa", "gumbel"), ("dspark", "cold"),
    ("dflash_speculators", "gumbel"), ("mtp_qwen3", "gumbel")])
def test_the_text_is_that_of_plain_decoding(name, kind):
  target = "llama" if name in LLAMA else "qwen3"
  decoder = decoder_of(name, 3, *TRANSFORMS[kind])
  got = decode.generate(decoder, KEY, params_of(name), *ragged(name), 12)
  np.testing.assert_array_equal(got.tokens, plain(target, kind))
  if kind == "cold":
    want = goldens.expected(f"target_{target}")["greedy_ids"]
    np.testing.assert_array_equal(got.tokens[2, :11], want[1:12])


def test_make_says_what_it_cannot():
  _, medusa = load("medusa")
  assert medusa.make(None).nodes == 4 and load("dflash")[1].make(None).nodes == 7
  for loaded, arguments, problem in (
      (medusa, dict(gamma=5), "drafts 1 to 4 tokens, got 5"),
      (load("dflash")[1], dict(gamma=8), "drafts 1 to 7 tokens, got 8"),
      (load("eagle1")[1], dict(gamma=0), "gamma = 0"),
      (load("eagle1")[1], dict(gamma=None), "give gamma"),
      (load("eagle1")[1], dict(tree="4x2"), "'4x2' is not supported")):
    with pytest.raises(ValueError, match=problem):
      loaded.make(**arguments)
