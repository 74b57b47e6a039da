"""The smallest complete rule: a file to copy when you add your own.

Replace this text by one line that says what the rule does, and by its source (paper, section, arXiv
id). The rule of this file is sample-and-match on a chain: the target draws its own token and goes
on where the draft has the same one.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from specjax.types import Array, Decision, Draft
from specjax.verify import parts
from specjax.verify.rule import CHAINS, Rule


def template() -> Rule:
  """Accepts X_i with probability p(X_i); otherwise the extra token has the law p without X_i.

  A number of the rule goes in as `Partial(_decide, number)` and comes back as the first argument of
  `_decide`: an array, so that a sweep over it compiles once.
  """
  # What you promise here is what `exact.certify` and the decoder take the rule for.
  return Rule(Partial(_decide), lossless=True, coupled=False, serves=CHAINS, bottom_up=False)


def _decide(draft: Draft, log_p: Array) -> Decision:
  """One row, no key: float[N] acceptances and float[N + 1, V] laws of the extra token."""
  vocab = log_p.shape[1]
  # On a chain, row n stands before node n.
  accept = jnp.exp(parts.at_token(log_p[:-1], draft.tokens))

  drafted = jax.nn.one_hot(draft.tokens, vocab, dtype=bool) & draft.valid[:, None]
  rest = jnp.where(drafted, 0, jnp.exp(log_p[:-1]))
  # Where p(X) = 1 nothing is left and nothing is ever rejected: `log_normalised` gives p there.
  after_rejection = jax.vmap(parts.log_normalised)(rest, log_p[:-1])

  return Decision(
      accept=jnp.where(draft.valid, accept, 0),  # a node that is not valid is never accepted
      log_next=jnp.concatenate([after_rejection, log_p[-1:]]))  # the last row is the bonus token
