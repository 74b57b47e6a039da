"""Gumbel coupling: drafter and target draw with the same noise, and agree where the argmaxes do.

Daliri, Musco, Suresh 2024, arXiv 2408.07978, algorithm 2.
"""

from jax.tree_util import Partial

from specjax import logits
from specjax.types import Array, Draft
from specjax.verify import coupled
from specjax.verify.rule import ANY, Rule


def gumbel() -> Rule:
  """Draws the target's token with the key of its position, and follows it if it was drafted.

  The emitted tokens are the target's own samples, so the text is a function of the seed and the
  target alone: the same for every drafter, gamma and tree, and the one of plain decoding. The law
  of the draft is not read. A drafter that draws the token at depth d by
  `logits.sample(keys[d], log_q)` agrees with probability `exact.coupling.gumbel_acceptance`.
  """
  return Rule(Partial(_walk), lossless=True, coupled=True, serves=ANY, bottom_up=False)


def _walk(keys: Array, draft: Draft, log_p: Array) -> tuple[Array, Array]:
  vocab, dtype = log_p.shape[1:], log_p.dtype
  return coupled.follow(keys, draft, log_p, lambda key, _: logits.noise(key, vocab, dtype))
