"""Sun, Suresh, Ro, Beirami, Jain, Yu, SpecTr: k sequential selection (K-SEQ)."""

import functools
import math

import jax.numpy as jnp
import numpy as np

from experiments.papers import rounds, toys, weights
from experiments.papers.claim import derived, needs_weights, Paper, QUOTED
from specjax import verify
from specjax.exact import bounds
from specjax.types import Draft

_ROWS = (  # pair, laws, drafts, rho* (None: no acceptance shows it), acceptance, optimal transport
    ("AB", toys.AB, 2, 1.434259, 0.811420, 8 / 9), ("AB", toys.AB, 3, 1.689729, 0.896576, 1.0),
    ("P3", toys.P3, 2, 1.4, 0.84, 0.89), ("R3", toys.R3, 2, 1.456776, 0.791355, 0.86),
    ("(3/4, 1/4), (1/4, 3/4)", toys.SWAPPED, 2, 1.59307, 0.648268, 11 / 16),
    ("uniform on 2 of 4", toys.HALF, 2, None, 3 / 4, 3 / 4),
    ("uniform on 2 of 4", toys.HALF, 4, None, 15 / 16, 15 / 16),
    ("(1, 0), (1/2, 1/2)", toys.SURE, 2, None, 3 / 4, 3 / 4))


@toys.in_float64
def _rho(laws, number):
  """rho*, read off the acceptance p / (rho q) of the token with the smallest ratio."""
  p, q = map(np.asarray, laws)
  token = int((p / q).argmin())
  draft = Draft(
      tokens=jnp.full(3, token, jnp.int32), parents=jnp.full(3, -1, jnp.int32),
      log_q=jnp.log(jnp.asarray(np.tile(q, (3, 1)))), valid=jnp.arange(3) < number)
  rows = jnp.log(jnp.asarray(np.tile(p, (4, 1))))
  return (p / q)[token] / toys.decide(verify.kseq(), draft, rows).accept[0].item()


def _shortfall():
  """How far acceptance falls below (1 - 1/e) of the optimum, over 50 random pairs, two drafts."""
  pairs = np.random.default_rng(0).dirichlet(np.ones(3), (50, 2))
  gaps = [(1 - 1 / math.e) * toys.closed(bounds.transport, laws, 2) - toys.hit(verify.kseq, laws, 2)
          for laws in (tuple(map(tuple, pair)) for pair in pairs)]
  return max(0.0, *gaps)


def _on_paths():
  return [rounds.joined_paths(verify.kseq, laws) for laws in (toys.AB, toys.P3)]


def _claims():
  for name, laws, number, rho, accepted, best in _ROWS:
    at = f"{number} independent drafts, pair {name}"
    if rho is not None:
      yield derived("K-SEQ", f"rho*, {at}", rho, functools.partial(_rho, laws, number), 1e-6)
    yield derived("K-SEQ", f"acceptance, {at}", accepted,
                  functools.partial(toys.hit, verify.kseq, laws, number), 1e-6)
    yield derived("optimal transport", f"largest acceptance, {at}", best,
                  functools.partial(toys.closed, bounds.transport, laws, number))
  yield derived("K-SEQ, guarantee", "how far acceptance falls below 1 - 1/e of the optimum, "
                "50 random pairs", 0.0, _shortfall)
  yield derived("K-SEQ", "E[tau] of two independent paths of two, pairs AB and P3",
                (1.405487, 1.471543), lambda: [tau for _, tau in _on_paths()], 1e-6)
  yield derived("losslessness", "TV of text and target, two independent paths of two, AB and P3",
                (0, 0), lambda: [tv for tv, _ in _on_paths()])
  yield needs_weights(
      "experiments", "block efficiency of one draft and of 8, and speed of 8, PaLM-2 Bison with "
      "Gecko, length 8, T = 1", (2.9, 4.0, 2.13),
      weights.sweep("LARGE_MODEL", "SMALL_MODEL", "token,kseq", 8, 1, "PROMPTS.jsonl"), QUOTED)


PAPER = Paper(
    name="sun2023",
    title="SpecTr: Fast Speculative Decoding via Optimal Transport, NeurIPS 2023, arXiv 2310.15141",
    claims=tuple(_claims()))
