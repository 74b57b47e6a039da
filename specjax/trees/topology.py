"""Shapes of drafts: from a few numbers to the parents of all nodes, which are static.

All functions return tuple[int, ...], ROOT or the index of an earlier node for each of N nodes.
"""

from specjax.types import ROOT


def chain(gamma: int) -> tuple[int, ...]:
  """A single path of gamma nodes."""
  return tuple(range(ROOT, gamma - 1))


def paths(number: int, gamma: int) -> tuple[int, ...]:
  """`number` paths of gamma nodes, separate from the root on, one after the other."""
  return tuple(ROOT if step == 0 else path * gamma + step - 1
               for path in range(number) for step in range(gamma))


def branching(widths: tuple[int, ...]) -> tuple[int, ...]:
  """Every node at depth d, the root at 0, has widths[d] children; level by level."""
  parents, level = [], [ROOT]
  for width in widths:
    start = len(parents)
    parents += [parent for parent in level for _ in range(width)]
    level = range(start, len(parents))
  return tuple(parents)
