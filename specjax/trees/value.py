"""What a drafted tree is worth, and the best tree of a given size.

Chen, May, Svirschevski, Huang, Ryabinin, Jia, Chen, "Sequoia: Scalable and Robust Speculative
Decoding", NeurIPS 2024, arXiv 2402.12374, section 3.1 and algorithm 1.
"""

import numpy as np

from specjax.types import Error


def tree_value(acceptance, nodes: int, depth: int | None = None) -> np.ndarray:
  """Tokens per target pass of the best tree of at most 1 .. nodes nodes, float64[nodes].

  The recursion, with T[n, b] the best tree of n nodes whose root has b children and T_max its
  maximum over b:  T[n, b] = max_m T[n - m, b - 1] + P_b T_max[m],  T[1, 0] = 1. The root is a node
  (it stands for the extra token, which every pass gives), so entry n - 1 belongs to n - 1 drafted
  tokens.

  Args:
    acceptance: float[B]; entry b is P_(b+1), the probability that the walk moves to child b of a
      node, as it is measured with up to B children a node. Their sum is at most 1.
    nodes: the size of the largest tree, at least 1.
    depth: the largest number of drafted tokens on a path; no limit if None.

  Raises:
    Error: probabilities that are negative or sum to more than 1, nodes < 1, depth < 0.
  """
  acceptance = np.asarray(acceptance, np.float64)
  if acceptance.ndim != 1 or (acceptance < 0).any() or not acceptance.sum() <= 1 + 1e-9:
    raise Error(
        "acceptance must be float[B], the probabilities of moving to child 1 .. B of a node, which "
        f"are at least 0 and sum to at most 1; got {acceptance}.")
  if nodes < 1 or (depth is not None and depth < 0):
    raise Error(f"nodes must be at least 1 and depth at least 0; got {nodes} and {depth}.")
  levels = nodes - 1 if depth is None else min(depth, nodes - 1)
  below = np.full(nodes + 1, -np.inf)  # the best tree of n nodes with no level below its root
  below[1] = 1
  for _ in range(levels):
    deeper = _one_level(acceptance, below)
    if np.array_equal(deeper, below):
      break
    below = deeper
  # No tree of exactly n nodes may exist within the depth; a smaller one is then the best.
  return np.maximum.accumulate(below[1:])


def _one_level(acceptance: np.ndarray, below: np.ndarray) -> np.ndarray:
  """The best values float[nodes + 1] when every child of the root may head a tree from `below`."""
  size = below.shape[0]
  current = np.full(size, -np.inf)
  current[1] = 1
  best = current.copy()
  for probability in acceptance:
    following = np.full(size, -np.inf)
    for child in range(1, size - 1):
      if np.isfinite(below[child]):
        following[child + 1:] = np.maximum(
            following[child + 1:], current[1:size - child] + probability * below[child])
    current = following
    best = np.maximum(best, current)
  return best
