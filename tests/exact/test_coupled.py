"""Certificates of coupled rules, and mutants of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from specjax import keys as keys_lib, verify
from specjax.exact import certify, coupled, drafts, systems
from specjax.logits import law
from specjax.types import PAD, PATH_NOISE

_SHARED = drafts.chain(2)._replace(siblings=drafts.SHARED_NOISE)
_PATHS = drafts.paths(2, 1, PATH_NOISE)


def _mutant(formula, serves=verify.CHAINS):
  return verify.Rule(Partial(formula), lossless=True, coupled=True, serves=serves, bottom_up=False)


def _few(depth):
  return systems.concatenate(systems.random(0, 6, 3, depth), systems.pair("P3", depth))


def _coin_beside_the_noise(keys, draft, log_p):
  """Accepts by u < p / q, with noise-coupled drafts and a residual from the same noise."""
  accept = jnp.exp((log_p[:-1] - draft.log_q)[jnp.arange(2), draft.tokens])
  heads = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, 9)))(keys[:2])
  count = jnp.cumprod((heads.astype(accept.dtype) < accept) & draft.valid).sum(dtype=jnp.int32)
  residual = law.log_residual(log_p[:-1], draft.log_q)
  laws = jnp.concatenate([residual, log_p[-1:]])
  return count - 1, law.sample(keys[count], laws[count])


def _first_path_that_agrees(keys, draft, log_p):
  """Draws the target's token anew for every path and keeps the first that has been drafted."""
  drawn = jnp.stack([law.sample(keys_lib.path(keys[0], path), log_p[0]) for path in range(2)])
  agrees = (drawn == draft.tokens) & draft.valid
  stop = jnp.where(agrees.any(), jnp.argmax(agrees), PAD).astype(jnp.int32)
  extra = jnp.where(stop == PAD, drawn[1], law.sample(keys[1], log_p[stop + 1]))
  return stop, extra


def test_gumbel_texts_equal_plain_decoding_bit_for_bit():
  found = certify(verify.gumbel(), [_SHARED], _few(2))
  assert found.max_tv == 0 and found.lossless
  assert "equals plain decoding" in found.how
  assert found.cases[0].at("P3") == pytest.approx(10 / 9, abs=1e-13)


def test_an_accept_coin_beside_the_noise_is_caught():
  found = certify(_mutant(_coin_beside_the_noise), [_SHARED], _few(2))
  assert found.max_tv > .05 and not found.lossless


def test_list_gumbel_is_not_rejected():
  found = certify(verify.list_gumbel(), [_PATHS, drafts.paths(2, 2, PATH_NOISE)], _few(2))
  assert found.max_tv == 0 and "simulated" in found.how
  assert found.cases[0].at("P3") == pytest.approx(.792037, abs=1e-6)


def test_drawing_anew_for_every_path_is_rejected():
  found = certify(_mutant(_first_path_that_agrees, serves=verify.ANY), [_PATHS], _few(1))
  assert found.max_tv > 0 and not found.lossless


def test_trees_with_shared_noise_have_no_efficiency_of_their_own():
  found = certify(verify.gumbel(), [drafts.tree((2, 1), drafts.SHARED_NOISE)], _few(2))
  assert found.max_tv == 0 and np.isnan(found.block_efficiency)


def test_what_is_not_drafted_is_not_accepted():
  scheme = _SHARED._replace(name="nothing", invalid=(0,))
  found = certify(verify.gumbel(), [scheme], _few(2))
  assert found.max_tv == 0 and found.block_efficiency == 1


def test_drafts_must_share_the_noise():
  with pytest.raises(ValueError, match="share its noise .*, not under 'chain 2'"):
    certify(verify.gumbel(), [drafts.chain(2)], _few(2))


def test_the_false_alarm_is_stated():
  assert f"{coupled.FALSE_ALARM:g}" in coupled.how([_PATHS])
