"""The walk of coupled rules: no coins, only a comparison of tokens drawn with shared noise."""

from typing import Callable

import jax.numpy as jnp
from jax import lax

from specjax.types import Array, Draft
from specjax.verify import checks


def follow(
    keys: Array, draft: Draft, draw: Callable[[Array, Array, Array], Array]
) -> tuple[Array, Array]:
  """Follows the target's own tokens down the draft, for as long as they have been drafted.

  Only the rows that the walk reaches are drawn from, so the noise that is made is that of the
  emitted tokens. Equal siblings (separate chains with one prefix) are followed together.

  Args:
    keys: key[depth + 1], the keys of the positions after the text.
    draft: the drafted nodes of one row.
    draw: (key, row int32[], standing bool[N + 1]) -> the target's token int32[] after row `row` of
      its laws; `standing` marks all rows where the walk stands, `row` is the first of them.

  Returns:
    The node int32[] where the walk stops, or ROOT,
    and the token int32[] that was not drafted there.
  """
  checks.check_position_keys(keys)

  def step(carry):
    depth, standing, _, _ = carry
    token = draw(keys[depth], jnp.argmax(standing), standing)
    agrees = draft.valid & standing[draft.parents + 1] & (draft.tokens == token)
    # Without a further key the walk has to stop, drafted or not; the token is right either way.
    goes_on = agrees.any() & (depth + 1 < keys.shape[0])
    return depth + 1, jnp.where(goes_on, jnp.append(False, agrees), standing), token, goes_on

  root = jnp.arange(draft.tokens.shape[0] + 1) == 0
  start = jnp.int32(0), root, jnp.int32(0), jnp.bool_(True)
  _, standing, token, _ = lax.while_loop(lambda carry: carry[-1], step, start)
  return jnp.argmax(standing).astype(jnp.int32) - 1, token
