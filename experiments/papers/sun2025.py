"""Sun, Mendlovic, Leviathan, Aharoni, Beirami, Ro, Suresh, block verification."""

import functools

import numpy as np

from experiments.papers import decoding, rounds, toys, weights
from experiments.papers.claim import Claim, derived, MEASURED, needs_weights, Paper, QUOTED
from specjax import verify
from specjax.exact import drafts

_ACCEPTED = (  # pair, laws, first gamma, E[tau]
    ("AB", toys.AB, 3, (5 / 3, 166 / 81, 64 / 27, 1933 / 729)),
    ("P3", toys.P3, 1, (0.7, 5 / 4, 213 / 125)),
    ("S3", toys.S3, 1, (1 / 2, 17 / 20, 109 / 100)))


def _gain(laws, gamma):
  """Relative gain in block efficiency over token verification."""
  block, token = (1 + rounds.chain_tau(rule, laws, gamma) for rule in (verify.block, verify.token))
  return block / token - 1


def _motivation():
  at = "vocabulary of two, target 1:2, draft 2:1, gamma = 2"
  for quantity, value, ours in (
      ("token verification", 10 / 9, lambda: rounds.chain_tau(verify.token, toys.AB, 2)),
      ("block verification", 11 / 9, lambda: rounds.chain_tau(verify.block, toys.AB, 2)),
      ("an ideal coupling of blocks", 12 / 9, lambda: rounds.joint_ideal(toys.AB, 2))):
    yield Claim("motivating example", f"E[tau] of {quantity}, {at}", value, ours, origin=QUOTED)
  yield derived("motivating example, longer", "E[tau] of an ideal coupling of blocks, gamma = 3, 4",
                (50 / 27, 64 / 27),
                lambda: [rounds.joint_ideal(toys.AB, gamma) for gamma in (3, 4)])


def _accepted():
  for name, laws, first, values in _ACCEPTED:
    gammas = range(first, first + len(values))
    yield derived("algorithm 2", f"E[tau] of pair {name}, gamma = {first} .. {gammas[-1]}", values,
                  functools.partial(rounds.chain_taus, verify.block, laws, gammas))
  yield derived("algorithm 2", "tokens a pass of the decoder, pair P3, gamma = 3: 213/125 + 1",
                2.704, functools.partial(decoding.tokens_per_pass, verify.block, toys.P3, 3),
                0.0135, kind=MEASURED, note="table models; 97000 passes, 3 sigma: 0.0126")


def _theorems():
  certificate = functools.partial(rounds.certificate, verify.block, drafts.chain(3))
  yield derived("losslessness", "largest TV of text and target, random and degenerate systems", 0.0,
                lambda: certificate().max_tv)
  yield derived("theorem 2", "E[tau] below the single-path optimum, mean over these systems", 0.0,
                lambda: certificate().distance)
  yield Claim("experiments", "gain over token verification at temperature 0", 0.0,
              lambda: _gain(toys.POINT, 3), origin=QUOTED)


def _directions():
  yield Claim("experiments", "mean gain in block efficiency, gamma = 8, PaLM-2; ours: P3, S3, R3, "
              "gamma = 3", 0.083,
              lambda: np.mean([_gain(laws, 3) for laws in (toys.P3, toys.S3, toys.R3)]),
              origin=QUOTED, direction=True)
  yield Claim("experiments", "the gain grows with gamma = 4, 6, 8; ours: from 1 to 2 to 3, pair P3",
              (1, 1), lambda: np.diff([_gain(toys.P3, gamma) for gamma in (1, 2, 3)]),
              origin=QUOTED, direction=True, note="1 stands for any increase")
  yield needs_weights(
      "experiments", "mean gain in block efficiency and in speed, PaLM-2, gamma = 8",
      (0.0830, 0.0649),
      weights.sweep("LARGE_MODEL", "SMALL_MODEL", "token,block", 8, 1, "PROMPTS.jsonl"), QUOTED)


PAPER = Paper(
    name="sun2025",
    title="Block Verification Accelerates Speculative Decoding, ICLR 2025, arXiv 2403.10444",
    claims=(*_motivation(), *_accepted(), *_theorems(), *_directions()))
