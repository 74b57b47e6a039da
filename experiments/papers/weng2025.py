"""Weng, Hu, Chen, Liu, Mei, Qiu, Tian, Shi, traversal verification."""

import functools

import jax.numpy as jnp
import numpy as np

from experiments.papers import rounds, toys, weights
from experiments.papers.claim import Claim, Contradiction, derived, needs_weights, Paper
from specjax import verify
from specjax.exact import drafts
from specjax.types import Draft

_A, _B, _C = range(3)
_TREES = {"2x1": drafts.tree((2, 1), toys.WITHOUT), "2x2": drafts.tree((2, 2), toys.WITHOUT)}

# E[tau] of depth-2 trees drawn without replacement: pair, tree, recursive rejection, traversal.
_ON_TREES = (
    ("AB", toys.AB, "2x1", 5 / 3, 16 / 9), ("P3", toys.P3, "2x1", 119 / 80, 157 / 100),
    ("P3", toys.P3, "2x2", 105 / 64, 541 / 320), ("S3", toys.S3, "2x1", 711 / 700, 781 / 700),
    ("S3", toys.S3, "2x2", 139119 / 122500, 37746 / 30625))

_ON_PATHS = (  # E[tau] of two independent paths of two: kept apart, and equal prefixes merged
    ("AB", toys.AB, 38 / 27, 115 / 81), ("P3", toys.P3, 727 / 500, 613 / 440),
    ("S3", toys.S3, 1.0, 1210537 / 1190000))

_MEASURED = (  # target, drafter, acceptance lengths of token-level verification and traversal
    ("Llama3.1-8B", "Llama3.2-1B",
     (("chain", (3.88, 3.99)), ("binary", (4.63, 4.73)), ("EAGLE tree", (4.49, 4.60)))),
    ("Llama2-7B", "Llama-68M",
     (("chain", (1.99, 2.10)), ("binary", (2.44, 2.56)), ("EAGLE tree", (2.52, 2.62)))))


@functools.lru_cache(maxsize=None)
@toys.in_float64
def _accept(make, tokens: tuple, parents: tuple) -> np.ndarray:
  """Acceptance of every node of a tree over P3; siblings are drawn without replacement."""
  p, q = map(np.asarray, toys.P3)
  laws = np.tile(q, (len(tokens), 1))
  for node, parent in enumerate(parents):
    before = [tokens[other] for other in range(node) if parents[other] == parent]
    laws[node, before] = 0
  draft = Draft(
      tokens=jnp.asarray(tokens, jnp.int32), parents=jnp.asarray(parents, jnp.int32),
      log_q=jnp.log(jnp.asarray(laws / laws.sum(-1, keepdims=True))),
      valid=jnp.ones(len(tokens), bool))
  rows = jnp.log(jnp.tile(p, (len(tokens) + 1, 1)))
  return np.asarray(toys.decide(make(), draft, rows).accept)


def _example(make, nodes: int) -> np.ndarray:
  """The first nodes of the worked example: a with children b and c, then c with child a."""
  return _accept(make, (_A, _B, _C, _C, _A)[:nodes], (-1, 0, 0, -1, 3)[:nodes])


def _worked_example():
  for quantity, value, nodes, node in (
      ("acceptance of the chain a, b", 2 / 3, 5, 1),
      ("weight of a once b was rejected", 1 / 11, 2, 0),
      ("acceptance of the chain a, c after that", 7 / 11, 5, 2),
      ("weight of a once b and c were rejected", 0.0, 5, 0)):
    yield Claim("section 3.2", f"traversal: {quantity}", value,
                lambda nodes=nodes, node=node: _example(verify.traversal, nodes)[node])
  yield Claim("section 3.2", "token-level acceptance of the chain a, b", 0.5,
              lambda: np.prod(_example(verify.token, 2)))
  yield Claim("section 2.2", "recursive rejection: acceptance of a, then of b, then of c below a",
              (1 / 2, 1, 1), lambda: _example(verify.recursive, 5)[:3])
  yield Claim("section 2.2", "recursive rejection: acceptance of b, and of c, once a was rejected",
              (4 / 9, 1), lambda: [_accept(verify.recursive, (_A, second), (-1, -1))[1]
                                   for second in (_B, _C)])


def _trees():
  for name, laws, tree, recursive, traversal in _ON_TREES:
    for place, rule, value in (("recursive rejection", verify.recursive, recursive),
                               ("traversal", verify.traversal, traversal)):
      yield derived(place, f"E[tau] of pair {name}, {tree} tree without replacement", value,
                    functools.partial(rounds.tau, rule, _TREES[tree], laws))
  for name, laws, apart, merged in _ON_PATHS:
    at = f"E[tau] of pair {name}, two independent paths of two"
    yield derived("traversal", f"{at}, kept apart", apart,
                  functools.partial(rounds.two_paths, verify.traversal, laws))
    yield derived("traversal", f"{at}, equal prefixes merged", merged,
                  functools.partial(rounds.two_paths, verify.traversal, laws, drafts.MERGED))


def _theorems():
  yield derived("losslessness", "TV of text and target, 2x2 trees without replacement, P3 and S3",
                (0, 0), lambda: [rounds.judged(verify.traversal, _TREES["2x2"], laws)[0]
                                 for laws in (toys.P3, toys.S3)])
  yield derived("single chains", "largest distance from block verification, gamma = 3", 0.0,
                lambda: rounds.largest_gap(verify.traversal, verify.block, 3))
  yield Claim("experiments", "gain in acceptance length, chain and binary tree; ours: P3, depth 2",
              (0.11, 0.10), _gains, direction=True)


def _gains():
  taus = lambda rule, tree: rounds.tau(rule, tree, toys.P3)
  chain = rounds.chain(2)
  return (taus(verify.traversal, chain) - taus(verify.token, chain),
          taus(verify.traversal, _TREES["2x2"]) - taus(verify.recursive, _TREES["2x2"]))


def _measured():
  for target, drafter, rows in _MEASURED:
    command = weights.sweep(
        target.upper(), drafter.upper(), "recursive,traversal", 5, 1, "PROMPTS.jsonl")
    for tree, values in rows:
      yield needs_weights(
          "experiments", f"acceptance length, token-level and traversal, {target} with {drafter}, "
          f"{tree}, depth 5, T = 1", values, command)


def _merging() -> str:
  merged = rounds.two_paths(verify.traversal, toys.P3, drafts.MERGED)
  _, rejection = rounds.joined_paths(verify.recursive, toys.P3)
  return ("It does on the trees without replacement here. With two independent paths of pair P3 it "
          f"accepts {merged:.4f} tokens if equal prefixes are merged, and recursive rejection, "
          f"which tries both copies, {rejection:.4f}.")


PAPER = Paper(
    name="weng2025",
    title="Traversal Verification for Speculative Tree Decoding, NeurIPS 2025, arXiv 2505.12398",
    claims=(*_worked_example(), *_trees(), *_theorems(), *_measured()),
    contradictions=(
        Contradiction("Traversal is reported to accept more than token-level rules.", _merging),))
