"""How much any rule can accept: what the certificates measure rules against.

`transport` bounds one position. Over several positions, `single_path` is the optimum of chains,
which block verification reaches, and `joint_ideal` is what a rule could reach that knew the laws of
all texts in advance; for trees it is the only bound at hand, and not known to be reachable.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from specjax.exact import prefixes
from specjax.exact.drafts import Drafts
from specjax.exact.rounds import joint
from specjax.types import Array

_MOST_CUT = 9  # texts of which all 2 ** 9 sets are tried


def transport(p: Array, q: Array, drafts: int) -> Array:
  """The largest probability float[] that one of k independent drafts from q is the output token.

  The optimal-transport value min over sets H of 1 + p(H) - q(H)^k; a minimising H is a prefix of
  the tokens in ascending order of p / q. SpecTr (Sun et al. 2023, arXiv 2310.15141, section 3)
  states the linear program, Hu et al. (2025, arXiv 2502.18779) its dual. For two drafts the value
  is 1 iff p(S) >= q(S)^2 for all S, the condition of Khisti et al. (2025, arXiv 2410.18234).

  Args:
    p: float[V], the target's law.
    q: float[V], the law of every draft.
    drafts: k >= 1.
  """
  p_below, q_below = _below(p, q)
  return 1 + (p_below - q_below**drafts).min()


def transport_without_replacement(p: Array, q: Array) -> Array:
  """`transport` for two drafts of which the second never repeats the first, float[].

  q must leave the second draft a token: two or more of positive probability.
  """
  order = _by_ratio(p, q)
  p, q = p[order], q[order]
  second = q / jnp.where(q < 1, 1 - q, 1)
  # Q(H) = sum over x in H of q(x) (q(H) - q(x)) / (1 - q(x)), for every prefix H at once.
  both = jnp.cumsum(q) * jnp.cumsum(second) - jnp.cumsum(q * second)
  return 1 + jnp.minimum((jnp.cumsum(p) - both).min(), 0)


def greedy_draft(p: Array, q: Array, drafts: int) -> Array:
  """The value float[] of k - 1 most likely tokens of q and one drawn from q without them.

  Hu et al. 2025, arXiv 2502.18779; SpecHub for k = 2: p(top) + sum over the rest of min(p, q'). If
  q leaves nothing to draw from, the last draft counts for nothing.
  """
  order = jnp.argsort(-q, stable=True)
  p, q = p[order], q[order]
  rest = q[drafts - 1:].sum()
  drawn = q[drafts - 1:] / jnp.where(rest > 0, rest, 1)
  return p[:drafts - 1].sum() + jnp.minimum(p[drafts - 1:], drawn).sum()


def single_path(log_p: Array, log_q: Array) -> Array:
  """The largest E[tau] float[] of any lossless rule for a chain of gamma = D drafted tokens.

  Sum over l of E_q[w_l(X^l)] with w_0 = 1, w_l = min(1, w_(l-1) p / q): theorem 2 of block
  verification (Sun et al. 2025, arXiv 2403.10444).

  Args:
    log_p: float[M, V] over the texts of at most gamma tokens.
    log_q: float[M, V].
  """
  vocab = log_p.shape[1]
  p, drafted = jnp.exp(log_p), joint(log_q)
  weight, total = jnp.ones(1, log_p.dtype), jnp.zeros((), log_p.dtype)
  for length in range(prefixes.depth_of(vocab, log_p.shape[0])):  # weight: q(x^l) w_l(x^l)
    continued = (weight[:, None] * p[prefixes.level(vocab, length)]).reshape(-1)
    weight = jnp.minimum(continued, drafted[prefixes.level(vocab, length + 1)])
    total += weight.sum()
  return total


def joint_ideal(drafts: Drafts, log_p: Array, depth: int) -> Array:
  """An upper bound float[] of E[tau] for any way to judge these drafts, given all laws in advance.

  For every length l the transport value between the target's texts of l tokens and the drafted
  ones, min over sets H of texts of 1 + p(H) - P(all drafted texts lie in H), summed over l. For a
  chain that is the sum of min(p(x^l), q(x^l)). Every H gives a bound; all are tried where there are
  few texts, else those in ascending order of p / P(drafted).

  Args:
    drafts: all drafts of one system, with their probabilities.
    log_p: float[M, V] over the texts of at least `depth` tokens.
    depth: D of the drafts.
  """
  vocab = log_p.shape[1]
  reach, total = joint(log_p), jnp.zeros((), log_p.dtype)
  for length in range(1, depth + 1):
    here = prefixes.level(vocab, length)
    total += _cut(reach[here], drafts, here.start)
  return total


def _by_ratio(p: Array, q: Array) -> Array:
  """The tokens in ascending order of p / q, those that are never drafted last."""
  return jnp.argsort(jnp.where(q > 0, p / jnp.where(q > 0, q, 1), jnp.inf))


def _below(p: Array, q: Array) -> tuple[Array, Array]:
  """p(H) and q(H), float[V + 1], of all prefixes H of `_by_ratio`, the empty one first."""
  order = _by_ratio(p, q)
  none = jnp.zeros(1, p.dtype)
  return tuple(jnp.concatenate([none, jnp.cumsum(law[order])]) for law in (p, q))


def _cut(p: Array, drafts: Drafts, first: int) -> Array:
  """The transport bound between p over n texts and the drafted ones among them.

  Args:
    p: float[n], the probabilities of the texts numbered first .. first + n - 1.
    drafts: the drafts.
    first: static.
  """
  texts = drafts.prefixes[:, 1:] - first  # int32[A, N]
  counts = drafts.draft.valid & (texts >= 0) & (texts < p.shape[0])
  if p.shape[0] <= _MOST_CUT:
    sets = np.array(list(itertools.product([False, True], repeat=p.shape[0])))
  else:
    held = jnp.where(counts, drafts.weight[:, None], 0)
    drafted = jax.ops.segment_sum(held.reshape(-1), texts.reshape(-1), p.shape[0])
    ranks = jnp.argsort(_by_ratio(p, drafted))
    sets = ranks[None, :] < jnp.arange(p.shape[0] + 1)[:, None]

  def mass(members):
    inside = (members[jnp.clip(texts, 0, p.shape[0] - 1)] | ~counts).all(-1)
    return jnp.where(members, p, 0).sum() - jnp.where(inside, drafts.weight, 0).sum()

  return 1 + jax.vmap(mass)(jnp.asarray(sets)).min()
