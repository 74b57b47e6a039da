"""Faults that public implementations had, carried out on purpose: how far each leaves the target.

Every row has the law of the text that comes out, or its total variation from the target's. That
they come out as predicted shows that the certificates of `experiments.certify` see such faults.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from experiments.papers import backward, draws, rounds, toys
from experiments.papers.claim import derived, Paper, SIMULATED
from specjax import verify
from specjax.types import Decision, Draft
from specjax.verify import Rule

_THIRDS = (0.5, 0.3, 0.2)
_SKEWED = (0.6, 0.3, 0.1)
_CROWDED = ((0.1, 0.5, 0.4), (0.7, 0.2, 0.1))
_N = 1_000_000  # 3 sigma of a probability near 1/2: 0.0015


def block_with_token_residual() -> Rule:
  """Block verification whose extra token ignores the weight: [p - q]+ instead of [w p - q]+."""
  return Rule(
      Partial(_token_residual), lossless=False, coupled=False, serves=verify.CHAINS, bottom_up=True)


def block_until_first_failure() -> Rule:
  """Block verification whose walk starts at the root and stops at the first failing coin."""
  return dataclasses.replace(verify.block(), bottom_up=False, lossless=False)


def block_with_clipped_factors() -> Rule:
  """Block verification that clips every ratio at 1 instead of their running product."""
  return Rule(
      Partial(_clipped_factors), lossless=False, coupled=False, serves=verify.CHAINS,
      bottom_up=True)


def block_without_clip() -> Rule:
  """Block verification with the plain product of the ratios."""
  return Rule(
      Partial(_no_clip), lossless=False, coupled=False, serves=verify.CHAINS, bottom_up=True)


def kseq_with_rho_one() -> Rule:
  """K-SEQ with rho = 1, below rho*: the residual turns negative and is clipped. One position."""
  return Rule(Partial(_rho_one), lossless=False, coupled=False, serves=verify.ANY, bottom_up=False)


def without_residual() -> Rule:
  """Token verification that answers a rejection with a draw from p itself."""
  return Rule(
      Partial(_from_p), lossless=False, coupled=False, serves=verify.CHAINS, bottom_up=False)


def rejected_token_zeroed() -> Rule:
  """Token verification whose residual is p without the rejected token. One position."""
  return Rule(Partial(_zeroed), lossless=False, coupled=False, serves=verify.ANY, bottom_up=False)


def unnormalised() -> Rule:
  """Recursive rejection, without replacement, that never renormalises q. One position."""
  return Rule(Partial(_same_q), lossless=False, coupled=False, serves=verify.ANY, bottom_up=False)


def _token_residual(draft, log_p):
  block, token = (rule.decide(draft, log_p) for rule in (verify.block(), verify.token()))
  return Decision(block.accept, token.log_next)


def _clipped_factors(draft, log_p):
  weights = backward.joint(jnp.minimum(backward.ratios(draft, log_p), 1))
  return _weighed(draft, log_p, weights)


def _no_clip(draft, log_p):
  return _weighed(draft, log_p, backward.joint(backward.ratios(draft, log_p)))


def _weighed(draft, log_p, weights):
  """Block verification's formulas with given weights float[gamma + 1] of the prefixes."""
  below = lambda gain, loss: gain + 1 - weights[:-1]
  return backward.judge(draft, log_p, weights[:-1], weights[1:], below)


def _rho_one(draft, log_p):
  p, q = jnp.exp(log_p[0]), jnp.exp(draft.log_q[0])
  number, overlap = draft.valid.sum(), jnp.minimum(p, q)
  share = (1 - (1 - overlap.sum()) ** number) / overlap.sum()
  left = jnp.maximum(p - share * overlap, 0)
  accept = jnp.minimum(p / jnp.where(q > 0, q, 1), 1)[draft.tokens]
  return Decision(accept, jnp.concatenate([jnp.log(left / left.sum())[None], log_p[1:]]))


def _from_p(draft, log_p):
  return Decision(verify.token().decide(draft, log_p).accept, log_p)


def _zeroed(draft, log_p):
  rest = log_p[0].at[draft.tokens[0]].set(-jnp.inf)
  after = jax.nn.log_softmax(rest)
  accept = verify.recursive().decide(draft, log_p).accept
  return Decision(accept, jnp.concatenate([after[None], log_p[1:]]))


def _same_q(draft, log_p):
  return verify.recursive().decide(
      draft._replace(log_q=jnp.broadcast_to(draft.log_q[:1], draft.log_q.shape)), log_p)


@toys.in_float64
def _law(rule, p, q, tokens, weights, valid=None):
  """The law of the token if drafts tokens[A][N] come with these probabilities but record q."""
  tokens = jnp.asarray(tokens, jnp.int32)
  valid = jnp.ones(tokens.shape, bool) if valid is None else jnp.asarray(valid)
  draft = Draft(
      tokens=tokens, parents=jnp.full(tokens.shape, -1, jnp.int32), valid=valid,
      log_q=jnp.broadcast_to(jnp.log(jnp.asarray(q)), (*tokens.shape, len(q))))
  return toys.emitted(rule, draft, jnp.asarray(weights, float), jnp.log(jnp.asarray(p)))[0]


def _one_position():
  biased = (5 / 6, 0, 1 / 6)
  at = "p = (.5, .3, .2), q = (.6, .3, .1)"
  yield derived("huggingface/transformers 32867", f"argmax draft verified with softmax q, {at}",
                biased, lambda: _law(verify.token(), _THIRDS, _SKEWED, [[0]], [1.0]))
  yield derived("SafeAILab/EAGLE 183", f"two likeliest tokens verified with softmax q, {at}",
                biased, lambda: _law(verify.recursive(), _THIRDS, _SKEWED, [[0, 1]], [1.0]))
  yield derived("huggingface/transformers 47932", "drafts from the top 2, full q recorded, p = q = "
                "(.5, .3, .2)", (0.625, 0.375, 0),
                lambda: _law(verify.token(), _THIRDS, _THIRDS, [[0], [1]], [0.625, 0.375]))
  yield derived("ikawrakow/ik_llama.cpp 1820", "a drafted token dropped for its own low q, p = "
                "(.5, .5), q = (.8, .2)", (0.6, 0.4),
                lambda: _law(verify.token(), (0.5, 0.5), (0.8, 0.2), [[0], [1]], [0.8, 0.2],
                             [[True], [False]]))
  yield derived("Sequoia's SpecInfer baseline", "2 drafts without replacement verified as "
                "independent, P3", (0.3, 0.525, 0.175),
                lambda: toys.output(unnormalised, toys.P3, 2, toys.WITHOUT))
  yield derived("residual forgotten", "a draw from p after a rejection, AB", (4 / 9, 5 / 9),
                lambda: toys.output(without_residual, toys.AB))
  yield derived("residual p without the rejected token", "TV, P3", 1 / 14, lambda: np.abs(
      toys.output(rejected_token_zeroed, toys.P3) - np.asarray(toys.P3[0])).sum() / 2)
  yield derived("K-SEQ, rho below rho*", "rho = 1 with 2 drafts, AB", (4 / 9, 5 / 9),
                lambda: toys.output(kseq_with_rho_one, toys.AB, 2))
  yield derived("vllm 47386", "draft noise read again for the residual, p = (.1, .5, .4), q = "
                "(.7, .2, .1)", (0.0998, 0.4733, 0.4269),
                functools.partial(draws.reused_noise, _CROWDED, _N), 0.0019, kind=SIMULATED,
                note=f"n = {_N}, 3 sigma of two simulations")


def _blocks():
  tv = lambda make, gamma, laws: functools.partial(rounds.chain_tv, make, laws, gamma)
  for place, quantity, value, ours in (
      ("vllm-ascend 7807", "residual [p - q]+: TV, P3, gamma = 2", 1 / 100,
       tv(block_with_token_residual, 2, toys.P3)),
      ("vllm-ascend 7807", "residual [p - q]+: TV, P3, gamma = 3", 17 / 1000,
       tv(block_with_token_residual, 3, toys.P3)),
      ("vllm-ascend 7807", "residual [p - q]+: TV, AB, gamma = 2; two tokens hide it", 0.0,
       tv(block_with_token_residual, 2, toys.AB)),
      ("vllm-ascend 11985", "stopped at the first failing coin: TV, AB, gamma = 2", 1 / 3,
       tv(block_until_first_failure, 2, toys.AB)),
      ("vllm-ascend 11985", "stopped at the first failing coin: E[tau], AB, gamma = 2", 5 / 9,
       lambda: rounds.chain_tau(block_until_first_failure, toys.AB, 2)),
      ("vllm-ascend 11985", "stopped at the first failing coin: TV, P3, gamma = 2", 27 / 110,
       tv(block_until_first_failure, 2, toys.P3)),
      ("each ratio clipped", "TV, AB, gamma = 2", 1 / 9,
       tv(block_with_clipped_factors, 2, toys.AB)),
      ("no ratio clipped", "TV, AB, gamma = 2", 1 / 9, tv(block_without_clip, 2, toys.AB)),
      ("no ratio clipped", "E[tau], AB, gamma = 2, which looks better", 12 / 9,
       lambda: rounds.chain_tau(block_without_clip, toys.AB, 2))):
    yield derived(place, f"block verification, {quantity}", value, ours)


PAPER = Paper(
    name="public implementations (faults)", title="faults reported in public repositories",
    claims=(*_one_position(), *_blocks()))
