"""Chen, Borgeaud, Irving, Lespiau, Sifre, Jumper, speculative sampling."""

import numpy as np

from experiments.papers import rounds, toys, weights
from experiments.papers.claim import ARITHMETIC, Claim, derived, needs_weights, Paper, UNCHECKED
from specjax import verify
from specjax.exact import drafts

_LAWS = ((0.2, 0.5, 0.3), (0.6, 0.3, 0.1))
_PLACE = "modified rejection sampling"

_CHINCHILLA = (  # task, milliseconds a token, speed
    ("XSum, nucleus sampling", 7.52, 1.92), ("XSum, greedy", 7.00, 2.01),
    ("HumanEval, nucleus sampling", 5.73, 2.46))


def _parts():
  """(accepted mass float[V], law after a rejection float[V]) of one drafted token."""
  committed = rounds.committed(verify.token, drafts.chain(1), _LAWS)  # float[1 + V, V]
  return committed[1:].sum(-1), committed[0] / committed[0].sum()


def _from_p():
  """The law of the token if a rejection is answered by a draw from p itself."""
  accepted, _ = _parts()
  return accepted + (1 - accepted.sum()) * np.asarray(_LAWS[0])


def _correction():
  at = "p = (.2, .5, .3), q = (.6, .3, .1)"
  for quantity, value, ours in (
      ("accepted mass", (0.2, 0.3, 0.1), lambda: _parts()[0]),
      ("mass left for the correction", 0.4, lambda: 1 - _parts()[0].sum()),
      ("law of the correction", (0, 0.5, 0.5), lambda: _parts()[1]),
      ("law of the token", (0.2, 0.5, 0.3), lambda: toys.output(verify.token, _LAWS)),
      ("law of the token if p corrects instead (wrong)", (0.28, 0.50, 0.22), _from_p)):
    yield Claim(_PLACE, f"{quantity}, {at}", value, ours, origin=ARITHMETIC)


def _measured():
  command = weights.sweep("LARGE_MODEL", "SMALL_MODEL", "token", 4, "0,1", "PROMPTS.jsonl")
  for task, milliseconds, speed in _CHINCHILLA:
    yield needs_weights(
        "table 1", f"milliseconds a token and speed, Chinchilla 70B with 4B, K = 4, {task}",
        (milliseconds, speed), command, UNCHECKED)


PAPER = Paper(
    name="chen2023",
    title="Accelerating Large Language Model Decoding with Speculative Sampling, arXiv 2302.01318",
    claims=(
        *_correction(),
        derived("theorem 1", "largest TV of text and target, random and degenerate systems, K = 3",
                0.0, lambda: rounds.certificate(verify.token, drafts.chain(3)).max_tv),
        *_measured()))
