"""Rules that judge from the end lose nothing in float32: laws far apart, nearly equal, equal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import verify
from specjax.exact import law
from specjax.trees import topology
from specjax.types import Draft

VOCAB = 5000


def log_laws(logits):
  """Laws as float32 knows them, so that both precisions are asked about the same numbers."""
  return np.asarray(jax.nn.log_softmax(jnp.asarray(logits, jnp.float32))).astype(np.float64)


def drafts(parents, apart):
  """One draft for each distance between the logits of drafter and target."""
  rng, parents = np.random.default_rng(0), np.asarray(parents, np.int32)
  base = 3 * rng.normal(size=(len(parents) + 1, VOCAB))
  for scale in apart:
    log_p, near = log_laws(base), log_laws(base + scale * rng.normal(size=base.shape))
    log_q = near[parents + 1]
    weights = np.exp(log_q)
    tokens = [rng.choice(VOCAB, p=row / row.sum()) for row in weights]
    yield Draft(np.array(tokens, np.int32), parents, log_q, np.ones(len(parents), bool)), log_p


@pytest.mark.parametrize("rule, parents", [
    (verify.block(), topology.chain(5)), (verify.traversal(), topology.branching((2, 2))),
    (verify.multipath_block(), topology.paths(2, 3))],
    ids=["block", "traversal", "multipath_block"])
def test_float32_is_float64_to_seven_digits(rule, parents):
  judge = jax.jit(lambda draft, log_p: law(rule, draft, log_p))
  cast = lambda tree, dtype: jax.tree.map(
      lambda x: jnp.asarray(x.astype(dtype) if x.dtype == np.float64 else x), tree)
  for draft, log_p in drafts(parents, (3., .1, 1e-3, 1e-6, 0.)):
    single = np.asarray(judge(*cast((draft, log_p), np.float32)), np.float64)
    with jax.enable_x64(True):
      double = np.asarray(judge(*cast((draft, log_p), np.float64)))
    assert np.abs(single - double).sum() / 2 < 1e-6
