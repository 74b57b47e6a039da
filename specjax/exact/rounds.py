"""One round and several rounds, summed exactly over drafts and coins.

The argument of every losslessness proof is a continuation: whatever a round commits, exact samples
of p complete it, and the completed text must have the target's joint law. `text_law` computes that
law. If it holds after every prefix then rounds compose: by induction, all that follows a round may
be replaced by further rounds. `law_of_rounds` states the conclusion without the induction.
"""

import jax
import jax.numpy as jnp
import numpy as np

from specjax.exact import drafts as drafts_lib, prefixes
from specjax.exact.law import law
from specjax.types import Array, DETERMINISTIC, Error
from specjax.verify.rule import Rule


def one_round(rule: Rule, drafts: drafts_lib.Drafts, log_p: Array) -> Array:
  """float[M, V]: P(the round accepts exactly the text c, the extra token is v).

  Args:
    rule: the rule, not a coupled one.
    drafts: all drafts of one system, with their probabilities.
    log_p: float[M, V], the target's law after every prefix that the drafts reach.
  """
  def judge(draft, texts):
    return law(rule, draft, log_p[texts])

  each = jax.vmap(judge)(drafts.draft, drafts.prefixes)
  weight = drafts.weight[:, None, None]
  # A draft of probability zero has no defined law (p / 0); it must not spread its NaN.
  stops = jnp.where(weight > 0, weight * each, 0)
  vocab = log_p.shape[1]
  return jax.ops.segment_sum(
      stops.reshape(-1, vocab), drafts.prefixes.reshape(-1), log_p.shape[0])


def accepted(committed: Array) -> Array:
  """E[tau] float[]: the mean number of accepted tokens. Block efficiency is this plus one."""
  vocab = committed.shape[1]
  depth = prefixes.depth_of(vocab, committed.shape[0])
  return sum(length * committed[prefixes.level(vocab, length)].sum() for length in range(depth + 1))


def text_law(committed: Array, log_p: Array) -> Array:
  """The law float[V ** (D + 1)] of the first D + 1 tokens: one round, then exact samples of p.

  Args:
    committed: float[M, V] over the texts of at most D tokens.
    log_p: float[M, V].
  """
  vocab = log_p.shape[1]
  p, ended = jnp.exp(log_p), jnp.zeros(1, log_p.dtype)  # ended: the round ended on this text
  for length in range(prefixes.depth_of(vocab, log_p.shape[0]) + 1):
    here = prefixes.level(vocab, length)
    ended = (committed[here] + ended[:, None] * p[here]).reshape(-1)
  return ended


def total_variation(committed: Array, log_p: Array) -> Array:
  """float[]: between `text_law` and the target's own law of D + 1 tokens."""
  vocab = log_p.shape[1]
  length = prefixes.depth_of(vocab, log_p.shape[0]) + 1
  target = joint(log_p)[prefixes.level(vocab, length)]
  return jnp.abs(text_law(committed, log_p) - target).sum() / 2


def joint(log_p: Array) -> Array:
  """float[count(V, D + 1)]: P(a text begins with each prefix) under the laws log_p float[M, V]."""
  vocab = log_p.shape[1]
  p, reach = jnp.exp(log_p), [jnp.ones(1, log_p.dtype)]
  for length in range(prefixes.depth_of(vocab, log_p.shape[0]) + 1):
    reach.append((reach[-1][:, None] * p[prefixes.level(vocab, length)]).reshape(-1))
  return jnp.concatenate(reach)


def law_of_rounds(
    rule: Rule, scheme: drafts_lib.Scheme, log_p: Array, log_q: Array, length: int) -> Array:
  """The law float[V ** length] of the first `length` tokens of a text made by rounds alone.

  Every round drafts and verifies after whatever text the earlier ones have committed.

  Args:
    rule: the rule, not a coupled one.
    scheme: static; one that draws its drafts.
    log_p: float[M, V] over the texts of at least length - 1 + scheme.depth tokens.
    log_q: float[M, V].
    length: static, at least 1.

  Raises:
    Error: tables that are too small, or a scheme without probabilities.
  """
  vocab, depth = log_p.shape[1], scheme.depth
  if prefixes.depth_of(vocab, log_p.shape[0]) < length - 1 + depth:
    raise Error(
        f"{length} tokens in rounds of depth {depth} read laws after up to {length - 1 + depth} "
        f"tokens, but log_p {log_p.shape} ends before.")
  if scheme.siblings == DETERMINISTIC:
    raise Error("rounds are summed over a law of drafts, and deterministic drafts have none.")

  def from_prefix(rows):
    return one_round(rule, drafts_lib.enumerate_drafts(scheme, log_q[rows]), log_p[rows])

  starts = np.arange(prefixes.count(vocab, length - 1))
  rows = prefixes.below(vocab, starts, depth)
  reached = prefixes.child(rows[..., None], np.arange(vocab, dtype=np.int32), vocab)
  moves = jax.lax.map(from_prefix, rows)  # P(a round that starts at text c ends on each text below)
  ends = jnp.zeros(prefixes.count(vocab, length + depth), log_p.dtype).at[0].set(1)
  for done in range(length):  # ends[c]: the probability that some round ends on the text c
    here = prefixes.level(vocab, done)
    ends = ends.at[reached[here]].add(ends[here][:, None, None] * moves[here])
  law_ = ends[prefixes.level(vocab, length + depth)]
  for longer in reversed(range(length, length + depth)):
    law_ = ends[prefixes.level(vocab, longer)] + law_.reshape(-1, vocab).sum(1)
  return law_
