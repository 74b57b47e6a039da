"""The accepted path of a round as text that was read, for a drafter's `observe` to `read`."""

from typing import NamedTuple

import jax.numpy as jnp

from specjax.types import Array, Context, Verdict


class Read(NamedTuple):
  """The last arguments of a `ReadFn`: the root and the accepted path, T = D + 1 tokens a row."""

  tokens: Array  # int32[B, T + 1]: the root, the accepted tokens and the extra one, PAD after them
  features: Array | None  # float[B, T, C, H]
  start: Array  # int32[B]: the root's position
  count: Array  # int32[B]: 0 for a row that got no token


def read_of(verdict: Verdict, features: Array | None, context: Context) -> Read:
  """What the target has read of a round that stands in the text now.

  The features of the scored window lie in node order; those of the accepted path are gathered, so
  that feature t belongs to token t whatever the shape of the tree.

  Args:
    verdict, features, context: as an `ObserveFn` gets them.
  """
  start = context.lengths - verdict.count - 1
  root = jnp.take_along_axis(context.tokens, jnp.maximum(start, 0)[:, None], axis=1)
  if features is not None:
    rows = jnp.pad(jnp.maximum(verdict.path + 1, 0), ((0, 0), (1, 0)))  # row 0 is the root's
    features = jnp.take_along_axis(features, rows[:, :, None, None], axis=1)
  return Read(jnp.concatenate([root, verdict.tokens], axis=1), features, start, verdict.count)
