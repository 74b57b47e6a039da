"""The file that new rules are copied from is a rule itself: proven and compiled."""

import jax
import jax.numpy as jnp
import numpy as np

from specjax import exact, verify
from specjax.verify import template
from tests.verify import toys


def test_it_is_lossless_and_accepts_what_match_accepts():
  ours, match = (exact.certify(rule, exact.schemes.served(template.template()), number=20)
                 for rule in (template.template(), verify.match()))
  assert ours.max_tv < 1e-12
  for mine, other in zip(ours.cases, match.cases):
    np.testing.assert_allclose(mine.accepted, other.accepted, rtol=0, atol=1e-12)


def test_it_is_match_on_chains():
  cases = toys.random_cases(0, 40, 5, 4, "chain")
  np.testing.assert_allclose(
      toys.laws_of(template.template(), cases), toys.laws_of(verify.match(), cases), atol=1e-12)


def test_it_runs_compiled_over_a_batch():
  drafts, log_p = toys.stack(toys.random_cases(1, 8, 5, 4, "chain"))
  log_p = log_p.astype(jnp.float32)
  drafts = drafts._replace(log_q=drafts.log_q.astype(jnp.float32))
  keys = jax.random.split(jax.random.key(0), 8)
  verdict = jax.jit(jax.vmap(template.template().verify))(keys, drafts, log_p)
  assert verdict.tokens.shape == (8, 6)
  assert ((verdict.count >= 1) & (verdict.count <= 6)).all()
