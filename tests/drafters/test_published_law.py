"""Texts that drafters over hidden states helped to write have the target's joint law.

Four tokens over three rounds or so, n = 16 384 texts of 81 possible ones; Pearson's chi-square
against the target's own law, with the fixed bar of a false-alarm rate of 1e-6 and fixed seeds. A
drafter that misstates the law that it drew from must exceed the bar.
"""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
import numpy as np
import pytest
import scipy.stats

from specjax import decode, drafters, logits, verify
from specjax.models import transformer
from specjax.models.config import ModelConfig
from specjax.models.heads import dflash, eagle, medusa
from specjax.types import Params
from tests.models.heads import invented

SAMPLES, CHUNK, TOKENS, VOCAB, GAMMA = 16_384, 512, 4, 3, 2
BAR = scipy.stats.chi2.isf(1e-6, VOCAB**TOKENS - 1)
WARM = logits.temperature(0.8)
PROMPT = np.array([1, 2])
TINY = ModelConfig(
    vocab_size=VOCAB, hidden_size=8, mlp_size=12, num_layers=2, num_heads=2, num_kv_heads=1,
    head_dim=4, max_length=600)
ONE_LAYER = dataclasses.replace(TINY, num_layers=1)

EAGLE3 = eagle.Eagle3Config(ONE_LAYER, (0, 1), target_size=8, draft_vocab=2)
MEDUSA = medusa.MedusaConfig(8, VOCAB, (2,), GAMMA)
DSPARK = dflash.DFlashConfig(
    ONE_LAYER, (1,), 8, block_size=GAMMA, mask_token=0, draft_vocab=VOCAB, windows=(None,),
    causal=(False,), from_anchor=True, markov_rank=3)
CASES = {
    "eagle3": (drafters.feature(eagle.eagle3(EAGLE3), GAMMA), EAGLE3,
               dict(target_ids=jnp.array([0, 2]))),  # the token 1 is never drafted
    "medusa": (drafters.parallel_heads(MEDUSA, GAMMA), MEDUSA, {}),
    "dspark": (drafters.block_diffusion(DSPARK, GAMMA), DSPARK, {}),
}


def target_params():
  params = transformer.init_params(TINY, jax.random.key(0))
  return params | {"embedding": params["embedding"] * 40}


def joint_law(params) -> np.ndarray:
  """float[V, V, V, V] of the tokens after the prompt, by the target alone."""
  texts = np.array(list(itertools.product(range(VOCAB), repeat=TOKENS)))
  target = transformer.target(TINY)
  whole = np.concatenate([np.tile(PROMPT, (len(texts), 1)), texts], 1)
  output = target.forward(
      params, target.init(params, len(texts), 16), jnp.asarray(whole, jnp.int32),
      jnp.zeros(len(texts), jnp.int32))
  step = np.asarray(logits.log_law(output.logits, WARM), np.float64)[:, len(PROMPT) - 1:-1]
  each = np.take_along_axis(step, texts[..., None], -1)[..., 0]
  return np.exp(each.sum(-1)).reshape((VOCAB,) * TOKENS)


def chi_square(name, rule, change=lambda drafter: drafter):
  drafter, config, more = CASES[name]
  drafter, target = change(drafter), transformer.target(TINY, config.captures)
  # Sharper heads than the initial ones, so that a draft is often wrong.
  drafting = jax.tree.map(lambda x: 4 * x, invented.params(config)) | more
  params = Params(target_params(), drafting)
  decoder = decode.speculative(target, drafter, rule, WARM)
  prompts, seen = np.tile(PROMPT, (CHUNK, 1)), np.zeros((VOCAB,) * TOKENS)
  for chunk in range(SAMPLES // CHUNK):
    rows = np.arange(CHUNK) + chunk * CHUNK
    texts = decode.generate(
        decoder, jax.random.key(3), params, prompts, np.full(CHUNK, len(PROMPT)), TOKENS,
        rows=rows)
    np.add.at(seen, tuple(np.asarray(texts.tokens).T), 1)
  expected = SAMPLES * joint_law(params.target)
  return ((seen - expected) ** 2 / expected).sum()


@pytest.mark.full
@pytest.mark.parametrize("rule", [verify.token(), verify.block()], ids=["token", "block"])
@pytest.mark.parametrize("name", CASES)
def test_the_joint_law_is_the_targets(name, rule):
  assert chi_square(name, rule) < BAR


def with_a_flat_law(drafter):
  """States that every token was as likely as any other."""
  def propose(*arguments):
    proposal = drafter.propose(*arguments)
    log_q = jnp.full_like(proposal.draft.log_q, -np.log(VOCAB))
    return proposal._replace(draft=proposal.draft._replace(log_q=log_q))

  return dataclasses.replace(drafter, propose=Partial(propose))


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_a_misstated_law_is_seen(name):
  assert chi_square(name, verify.token(), with_a_flat_law) > BAR
