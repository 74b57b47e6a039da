"""The target's one pass over a draft: the last committed token and N nodes, N + 1 laws."""

from typing import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax.decode.state import State
from specjax.logits import law, token_counts, uses_counts
from specjax.trees import masks
from specjax.types import Array, Draft, Output, PAD, Params, Proposal, PyTree, Target


def score(
    target: Target, transform: Partial, params: Params, state: State, proposal: Proposal, *,
    chain: bool, abstains: bool, window: int) -> tuple[Output, Array]:
  """Passes [last token, draft] through the target: its output and its laws float[B, N + 1, V].

  Args:
    target, transform, params: of the decoder.
    state: before the round.
    proposal: of the drafter; the pass writes into the cache that it left.
    chain: the draft needs neither mask nor depths.
    abstains: a round may have no draft; its pass is then over one row only.
    window: rows of every pass in strict mode, 0 otherwise.
  """
  draft = proposal.draft
  last = jnp.take_along_axis(state.tokens, state.lengths[:, None] - 1, axis=1)
  tokens = jnp.concatenate([last, jnp.where(draft.valid, draft.tokens, 0)], axis=1)
  depths = mask = None
  if not chain:
    depths = jax.vmap(masks.window_depths)(draft.parents)
    mask = jax.vmap(masks.window_mask)(draft.parents)

  def whole(cache):
    if window:
      return _pass_through_window(target, params.target, cache, tokens, state.lengths - 1, window)
    return target.forward(params.target, cache, tokens, state.lengths - 1, depths, mask)

  def root_only(cache):
    output = target.forward(params.target, cache, last, state.lengths - 1)
    return _repeat_rows(output, tokens.shape[1])

  if abstains and not window:
    output = _either(draft.valid.any(), whole, root_only, proposal.cache)
  else:
    output = whole(proposal.cache)
  counts = None
  if uses_counts(transform):
    counts = _window_counts(state.tokens, draft, output.logits.shape[-1])
  return output, law.log_law(output.logits, transform, counts)


def not_laws(draft: Draft, log_p: Array) -> Array:
  """bool[B]: rows with a law that holds NaN, which `log_law` makes of NaN logits."""
  # The maximum of a row is NaN iff the row holds one: no second pass over V is needed for `any`.
  # Rows below nodes that are not valid are the laws after tokens that nobody drafted.
  reached = jnp.pad(draft.valid, ((0, 0), (1, 0)), constant_values=True)
  bad = (jnp.isnan(log_p.max(-1)) & reached).any(-1)
  if draft.log_q is not None and draft.log_q.shape[1]:
    bad |= (jnp.isnan(draft.log_q.max(-1)) & draft.valid).any(-1)
  return bad


def _pass_through_window(
    target: Target, params: PyTree, cache: PyTree, tokens: Array, lengths: Array, window: int
) -> Output:
  """A pass over a chain tokens int32[B, T] as the first of `window` rows."""
  width = tokens.shape[1]
  padded = jnp.pad(tokens, ((0, 0), (0, window - width)))
  output = target.forward(params, cache, padded, lengths)
  logits, features = jax.tree.map(lambda rows: rows[:, :width], (output.logits, output.features))
  return Output(logits, features, output.cache)


def _either(
    condition: Array, one: Callable[[PyTree], Output], other: Callable[[PyTree], Output],
    cache: PyTree) -> Output:
  """The output of one of two passes over a cache, of equal shapes.

  Two loops of at most one turn, because they write into the cache where it lies: `lax.cond` on a
  CPU copies all of it twice, a tenth of the time of a round.
  """
  shapes = jax.eval_shape(one, cache)._replace(cache=None)
  nothing = jax.tree.map(lambda array: jnp.zeros(array.shape, array.dtype), shapes)

  def perhaps(wanted, pass_, output):
    def once(carry):
      return jnp.bool_(False), pass_(carry[1].cache)

    return lax.while_loop(lambda carry: carry[0], once, (wanted, output))[1]

  output = perhaps(condition, one, nothing._replace(cache=cache))
  return perhaps(~condition, other, output)


def _repeat_rows(output: Output, width: int) -> Output:
  """The output of a pass of one row, as if of `width` equal ones."""
  logits, features = jax.tree.map(
      lambda rows: jnp.repeat(rows, width, axis=1), (output.logits, output.features))
  return Output(logits, features, output.cache)


def _window_counts(tokens: Array, draft: Draft, vocab: int) -> Array:
  """int32[B, N + 1, V]: token counts at the root and after each node, along its own path."""
  window = jnp.pad(draft.tokens, ((0, 0), (1, 0)), constant_values=PAD)  # the root is in the text
  path = jax.vmap(masks.window_mask)(draft.parents)
  along = token_counts(jnp.where(path, window[:, None, :], PAD), vocab)
  return token_counts(tokens, vocab)[:, None] + along
