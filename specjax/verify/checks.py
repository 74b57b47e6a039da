"""Checks of what is handed to a rule.

Shapes are checked always. Values are checked at once where they are known (outside of jit), and as
`checkify.debug_check`s under a trace: those cost nothing unless the caller wraps the function in
`jax.experimental.checkify.checkify` (one row at a time for rules that loop, which checkify cannot
batch).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from specjax.types import Array, Draft, Error, ROOT

_MASS_TOLERANCE = 1e-3  # of a row's total probability; float32 sums over 1e5 tokens stay well below


def check(draft: Draft, log_p: Array, trees: bool, depth: int | None = None) -> None:
  """Raises Error if a draft and the target's laws cannot be judged by a rule.

  Args:
    draft: the draft of one row.
    log_p: float[N + 1, V].
    trees: whether the rule accepts drafts that branch.
    depth: the most nodes that a path may have; not looked at if not given.
  """
  _check_shapes(draft, log_p)
  _check_dtypes(draft, log_p)
  laws = {"log_p": log_p} if draft.log_q is None else {"log_p": log_p, "draft.log_q": draft.log_q}
  for name, rows in laws.items():
    check_values(
        f"{name} {rows.shape} has a row that is not a law: its probabilities do not sum to 1 (or "
        "are NaN). Rules take normalised log-probabilities; logits.log_law makes them.",
        _is_law(rows, draft.valid if name == "draft.log_q" else None))
  vocab = log_p.shape[-1]
  check_values(
      f"draft.tokens {draft.tokens.shape} holds a valid token outside of the vocabulary of "
      f"{vocab}.",
      ~draft.valid | ((draft.tokens >= 0) & (draft.tokens < vocab)))
  check_values(
      f"draft.valid {draft.valid.shape} marks a node below one that is not valid: a walk that ends "
      "there would take the undrafted node into the text.",
      ~draft.valid | jnp.append(jnp.ones(1, bool), draft.valid)[draft.parents + 1])
  index = jnp.arange(draft.tokens.shape[0], dtype=jnp.int32)
  check_values(
      f"draft.parents {draft.parents.shape} must be ROOT (-1) or the index of an earlier node.",
      (draft.parents >= -1) & (draft.parents < index))
  if depth is not None:
    check_values(
        f"draft.parents {draft.parents.shape} has a valid node deeper than depth={depth}: the "
        "verdict has no room for its path.",
        ~draft.valid | _at_most(draft.parents, depth))
  if not trees:
    check_values(
        f"draft.parents {draft.parents.shape} branches, and this rule judges chains only "
        "(parents -1, 0, 1, ...). Rules for trees have rule.trees == True.",
        draft.parents == index - 1)


def _check_shapes(draft: Draft, log_p: Array) -> None:
  if log_p.ndim != 2:
    raise Error(
        f"log_p must be float[N + 1, V] for one row, got shape {log_p.shape}; vmap over batches.")
  if 0 in log_p.shape:
    raise Error(
        f"log_p must be float[N + 1, V] with at least the row of the root and one token, got shape "
        f"{log_p.shape}.")
  nodes, vocab = log_p.shape[0] - 1, log_p.shape[1]
  expected = {"tokens": (nodes,), "parents": (nodes,), "valid": (nodes,), "log_q": (nodes, vocab)}
  for name, shape in expected.items():
    value = getattr(draft, name)
    if value is not None and value.shape != shape:
      raise Error(
          f"draft.{name} has shape {value.shape}, but log_p {log_p.shape} asks for {shape}: a "
          "draft of N nodes needs N + 1 rows of log_p, the last of them for the bonus token.")


def _check_dtypes(draft: Draft, log_p: Array) -> None:
  if draft.log_q is not None and draft.log_q.dtype != log_p.dtype:
    raise Error(
        f"draft.log_q is {draft.log_q.dtype} and log_p {log_p.dtype}; laws must share one dtype.")
  if log_p.dtype not in (jnp.float32, jnp.float64):  # narrower ones do not hold a law's sum
    raise Error(
        f"log_p {log_p.shape} is {log_p.dtype}, but laws are float32 or float64; logits.log_law "
        "widens narrower logits.")
  kinds = {"tokens": jnp.integer, "parents": jnp.integer, "valid": jnp.bool_}
  for name, kind in kinds.items():
    value = getattr(draft, name)
    if not jnp.issubdtype(value.dtype, kind):
      raise Error(
          f"draft.{name} {value.shape} must be {'bool' if kind is jnp.bool_ else 'int32'}, got "
          f"{value.dtype}.")


def _at_most(parents: Array, depth: int) -> Array:
  """bool[N]: whether the root is reached from each node in that many steps."""
  at = jnp.arange(parents.shape[0], dtype=jnp.int32)
  for _ in range(depth):
    at = jnp.where(at == ROOT, ROOT, parents[at])
  return at == ROOT


def _is_law(rows: Array, wanted: Array | None) -> Array:
  sums = jnp.exp(rows).sum(-1)
  ok = jnp.abs(sums - 1) < _MASS_TOLERANCE  # false for NaN
  return ok if wanted is None else ok | ~wanted


def check_values(message: str, ok: Array) -> None:
  """Raises Error unless all is true; under a trace it is a `checkify.debug_check`."""
  if isinstance(ok, jax.core.Tracer):
    checkify.debug_check(ok.all(), message)
  elif not np.asarray(ok).all():
    raise Error(message)


def check_position_keys(keys: Array) -> None:
  """Raises Error unless a coupled rule was handed key[depth + 1]."""
  if keys.ndim != 1:
    raise Error(
        "A coupled rule reads the keys of positions, key[depth + 1], got "
        f"{keys.dtype}{keys.shape}; keys.positions makes them.")


def check_chains(draft: Draft, rule: str) -> None:
  """Raises Error if a draft branches below the root."""
  index = jnp.arange(draft.tokens.shape[0], dtype=jnp.int32)
  siblings = (draft.parents[:, None] == draft.parents[None, :]) & (index[:, None] != index[None, :])
  check_values(
      f"draft.parents {draft.parents.shape} branches below the root, and {rule} judges separate "
      "chains only; draft every path as a chain of its own.",
      (draft.parents == -1) | ~siblings.any(-1))


def check_scalars(formula) -> None:
  """Raises Error if a rule with a number for each row of a batch is to judge one row."""
  for number in jax.tree.leaves(formula):
    if np.ndim(number):
      raise Error(
          f"The rule holds an array of shape {np.shape(number)}, one number for each row of a "
          "batch, and judges one row: map over the rule as well, jax.vmap(judge, (0, 0, ...)).")
