"""The numbering of prefixes: every text of at most D tokens is a node of a complete V-ary tree.

The empty text is node 0 and text c followed by token v is node c V + v + 1. Nodes of one length are
then consecutive, so that a law for every prefix is a plain array float[count(V, D), V].
"""

import numpy as np

from specjax.types import Error


def count(vocab: int, depth: int) -> int:
  """The number of texts of at most `depth` tokens."""
  return sum(vocab**length for length in range(depth + 1))


def child(prefix, token, vocab: int):
  """The number of the text `prefix` (a number, or an array of them) followed by `token`."""
  return prefix * vocab + token + 1


def level(vocab: int, length: int) -> slice:
  """The numbers of the texts of exactly `length` tokens."""
  return slice(count(vocab, length - 1), count(vocab, length))


def below(vocab: int, prefixes: np.ndarray, depth: int) -> np.ndarray:
  """int32[K, count(V, depth)]: the subtree of every prefix int[K], numbered like the whole tree."""
  blocks, first = [], np.asarray(prefixes)
  for length in range(depth + 1):
    blocks.append(first[:, None] + np.arange(vocab**length))
    first = child(first, 0, vocab)
  return np.concatenate(blocks, axis=1).astype(np.int32)


def depth_of(vocab: int, prefixes: int) -> int:
  """The depth D of a table with count(V, D) rows.

  Raises:
    Error: no depth gives that many rows.
  """
  depth = 0
  while count(vocab, depth) < prefixes:
    depth += 1
  if count(vocab, depth) != prefixes:
    raise Error(
        f"a table over {vocab} tokens has 1, {1 + vocab}, {1 + vocab + vocab**2}, ... rows, one "
        f"for every prefix up to some length; got {prefixes} rows.")
  return depth
