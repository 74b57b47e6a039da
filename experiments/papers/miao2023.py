"""Miao et al., SpecInfer: naive sampling, multi-step sampling, and the naive tree."""

import functools

import jax.numpy as jnp
from jax.tree_util import Partial

from experiments.papers import rounds, toys
from experiments.papers.claim import derived, Paper
from specjax import verify
from specjax.logits import law
from specjax.types import Decision
from specjax.verify import Rule

_NAIVE = (  # pair, laws, drafts, P(a drafted token is emitted)
    ("AB", toys.AB, 2, 2 / 3), ("AB", toys.AB, 3, 64 / 81), ("P3", toys.P3, 2, 0.513),
    ("R3", toys.R3, 2, 0.483), ("(3/4, 1/4), (1/4, 3/4)", toys.SWAPPED, 2, 9 / 16),
    ("uniform on 2 of 4", toys.HALF, 2, 7 / 16), ("uniform on 2 of 4", toys.HALF, 4, 175 / 256),
    ("(1, 0), (1/2, 1/2)", toys.SURE, 2, 3 / 4))

_NAIVE_TREE = (
    ("AB", toys.AB, 2, 7 / 9), ("AB", toys.AB, 3, 23 / 27), ("P3", toys.P3, 2, 3 / 4),
    ("R3", toys.R3, 2, 0.76), ("(3/4, 1/4), (1/4, 3/4)", toys.SWAPPED, 2, 5 / 8),
    ("uniform on 2 of 4", toys.HALF, 2, 5 / 8), ("uniform on 2 of 4", toys.HALF, 4, 101 / 128),
    ("(1, 0), (1/2, 1/2)", toys.SURE, 2, 3 / 4))


def naive_tree() -> Rule:
  """Token verification of the first child; its residual sample may be one of the other children.

  For one position only: all nodes hang below the root.
  """
  return Rule(
      Partial(_naive_tree), lossless=True, coupled=False, serves=verify.ANY, bottom_up=False)


def _naive_tree(draft, log_p):
  others = draft._replace(valid=draft.valid.at[0].set(False))
  residual = law.log_residual(log_p[:1], draft.log_q[:1])
  rest = verify.match().decide(others, jnp.broadcast_to(residual, log_p.shape))
  first = draft.tokens[0]
  accept = jnp.exp(jnp.minimum(log_p[0, first] - draft.log_q[0, first], 0))
  return Decision(
      rest.accept.at[0].set(accept), jnp.concatenate([rest.log_next[:1], log_p[1:]]))


def _claims():
  for place, rule, rows in (("naive sampling", verify.match, _NAIVE),
                            ("comparison rule, naive tree", naive_tree, _NAIVE_TREE)):
    for name, laws, number, value in rows:
      yield derived(place, f"P(a drafted token is emitted), {number} independent drafts, "
                    f"pair {name}", value, functools.partial(toys.hit, rule, laws, number))
  yield derived("naive sampling", "E[tau] of a chain of two, pairs AB and P3", (52 / 81, 0.4389),
                lambda: [rounds.chain_tau(verify.match, laws, 2) for laws in (toys.AB, toys.P3)])
  yield derived("naive sampling", "E[tau] of two independent paths of two, pairs AB and P3",
                (82 / 81, 0.709191),
                lambda: [rounds.joined_paths(verify.match, laws)[1] for laws in (toys.AB, toys.P3)])
  yield derived("algorithm 2", "P(a drafted token is emitted), 2 independent drafts, P3 and R3",
                (0.82, 0.76),
                lambda: [toys.hit(verify.specinfer, laws, 2) for laws in (toys.P3, toys.R3)])
  yield derived("losslessness", "TV of text and target, two independent paths of two, P3", 0.0,
                lambda: rounds.joined_paths(verify.specinfer, toys.P3)[0])


PAPER = Paper(
    name="miao2023", title="SpecInfer, ASPLOS 2024, arXiv 2305.09781", claims=tuple(_claims()))
