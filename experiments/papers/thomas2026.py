"""Thomas and Pal, greedy multi-path block verification (GBV)."""

import functools

import jax.numpy as jnp
from jax.tree_util import Partial

from experiments.papers import rounds, toys, weights
from experiments.papers.claim import Claim, Contradiction, derived, needs_weights, Paper, QUOTED
from specjax import verify
from specjax.exact import drafts
from specjax.logits import law
from specjax.types import Decision
from specjax.verify import Rule

_UNIFORM = "uniform on two, p = q"
_PATHS = (  # pair, laws, paths, length, E[tau]
    ("AB", toys.AB, 2, 2, 131 / 81), ("AB", toys.AB, 3, 2, 1289 / 729),
    ("P3", toys.P3, 2, 2, 1.6254), ("S3", toys.S3, 2, 2, 1.0949), ("AB", toys.AB, 2, 1, 8 / 9),
    ("AB", toys.AB, 3, 1, 26 / 27), ("P3", toys.P3, 2, 1, 0.89), (_UNIFORM, toys.EVEN, 1, 1, 1.0),
    (_UNIFORM, toys.EVEN, 2, 1, 3 / 4), (_UNIFORM, toys.EVEN, 3, 1, 5 / 8))


def mismatched_ties() -> Rule:
  """One position, as in a stored reference code: ties go to the first draft, q~ orders by id."""
  return Rule(
      Partial(_mismatched), lossless=False, coupled=False, serves=verify.ANY, bottom_up=False)


def _mismatched(draft, log_p):
  up_to = jnp.cumsum(jnp.exp(draft.log_q[0])) ** draft.valid.sum()  # all ratios are equal here
  log_picked = jnp.log(jnp.diff(up_to, prepend=0))
  accept = jnp.exp(jnp.minimum(log_p[0] - log_picked, 0))[draft.tokens]
  residual = law.log_residual(log_p[:1], log_picked[None])
  first = jnp.arange(draft.tokens.shape[0]) == 0
  return Decision(jnp.where(first, accept, 0), jnp.concatenate([residual, log_p[1:]]))


def _tau(laws, paths, length):
  return rounds.tau(verify.multipath_block, _scheme(paths, length), laws)


def _scheme(paths, length):
  """One or two paths cut from two of two tokens, three from three of two: see `rounds.chain`."""
  most = max(paths, 2)
  unused = [node for node in range(2 * most) if node // 2 >= paths or node % 2 >= length]
  return drafts.paths(most, 2)._replace(invalid=tuple(unused))


def _accepted():
  for name, laws, paths, length, value in _PATHS:
    yield derived("the rule", f"E[tau] of pair {name}, {paths} paths of {length}", value,
                  functools.partial(_tau, laws, paths, length))
  yield derived("reference code", "law of the token if choice and law break ties differently, "
                "p = q uniform on two, two paths of one", (2 / 3, 1 / 3), _tied_law)


def _tied_law():
  return toys.output(mismatched_ties, toys.EVEN, 2)


def _theorems():
  yield derived("losslessness", "TV of text and target, two paths of two, P3 and S3", (0, 0),
                lambda: [rounds.judged(verify.multipath_block, _scheme(2, 2), laws)[0]
                         for laws in (toys.P3, toys.S3)])
  yield derived("one path", "E[tau] is that of block verification: one path of two, pair P3", 5 / 4,
                lambda: _tau(toys.P3, 1, 2))
  yield Claim("abstract", "gain in block efficiency over block verification, above 30 % at best; "
              "ours: P3, two paths of two", 0.30, _gain,
              origin=QUOTED, direction=True)
  yield needs_weights(
      "abstract", "gain in block efficiency and in speed over block verification, at best",
      (0.30, 0.15),
      weights.sweep("LLAMA3_70B", "LLAMA3_8B", "block,multipath_block", 8, 1, "PROMPTS.jsonl"),
      QUOTED)


def _gain():
  block = rounds.chain_tau(verify.block, toys.P3, 2)
  return (1 + _tau(toys.P3, 2, 2)) / (1 + block) - 1


def _ties() -> str:
  first, second = _tied_law()
  return ("Only one strict order keeps the target's law. If the choice takes the first draft and "
          "the law the order of ids, p = q uniform on two tokens with two paths gives "
          f"({first:.4f}, {second:.4f}).")


def _not_monotone() -> str:
  values = ", ".join(f"{_tau(toys.EVEN, paths, 1):.4f}" for paths in (1, 2, 3))
  return ("With p = q uniform on two tokens and paths of one token, acceptance with 1, 2, 3 paths "
          f"is {values}: it falls, since the best of several paths no longer has the law q = p.")


def _against_traversal() -> str:
  ours, other = _tau(toys.AB, 2, 2), rounds.two_paths(verify.traversal, toys.AB, drafts.MERGED)
  mine, yours = _tau(toys.EVEN, 2, 1), rounds.tau(verify.traversal, drafts.paths(2, 1), toys.EVEN)
  return ("Neither it nor traversal dominates: on two paths of two, pair AB, it accepts "
          f"{ours:.4f} against {other:.4f}; on two paths of one with p = q uniform {mine:.4f} "
          f"against {yours:.4f}.")


PAPER = Paper(
    name="thomas2026",
    title="Greedy Multi-Path Block Verification, 2026, arXiv 2602.16961",
    claims=(*_accepted(), *_theorems()),
    contradictions=(
        Contradiction("A stored version of the reference code breaks ties in two ways.", _ties),
        Contradiction("Gains are reported for several paths, but acceptance is not monotone in "
                      "their number.", _not_monotone),
        Contradiction("Higher throughput than other multi-path rules is reported.",
                      _against_traversal)))
