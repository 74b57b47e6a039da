"""Small decoders that the tests of this folder share."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from specjax import keys as keys_lib, logits
from specjax.logits import law
from specjax.models import transformer
from specjax.models.config import ModelConfig
from specjax.trees import topology
from specjax.types import Draft, Drafter, PATH_NOISE, Proposal, ROOT, WITHOUT_REPLACEMENT

VOCAB = 4
TINY = ModelConfig(
    vocab_size=13, hidden_size=16, mlp_size=24, num_layers=3, num_heads=4, num_kv_heads=2,
    head_dim=4, max_length=600)


def random_table(seed: int, order: int, sharpness: float = 1.5):
  """Logits float[V] * order + [V] of a Markov table whose laws depend on the prefix."""
  rng = np.random.default_rng(seed)
  return jnp.asarray(rng.normal(size=(VOCAB,) * (order + 1)) * sharpness, jnp.float32)


@functools.cache
def tiny_params(seed: int):
  """Random parameters of TINY, scaled up so that its laws are far from uniform."""
  params = transformer.init_params(TINY, jax.random.key(seed))
  return dict(params, embedding=params["embedding"] * 40)


def pairs_drafter(table_logits) -> Drafter:
  """A drafter of trees over a table of order 1: two children of the root, two of the first child.

  Siblings are drawn without replacement and record the renormalised law, as `Draft` asks.
  """
  return Drafter(
      propose=Partial(_propose_pairs, table_logits), nodes=4, depth=2, abstains=False,
      siblings=WITHOUT_REPLACEMENT)


def _propose_pairs(table_logits, keys, params, state, context):
  del params
  last = jnp.take_along_axis(context.tokens, context.lengths[:, None] - 1, axis=1)[:, 0]

  def grow(last, keys):
    first = _siblings(keys[0], logits.log_law(table_logits[last], logits.chain()))
    second = _siblings(keys[1], logits.log_law(table_logits[first[0][0]], logits.chain()))
    return [jnp.concatenate(parts) for parts in zip(first, second)]

  tokens, log_q = jax.vmap(grow)(last, keys)
  parents = jnp.broadcast_to(jnp.asarray([ROOT, ROOT, 0, 0], jnp.int32), tokens.shape)
  return Proposal(
      Draft(tokens, parents, log_q, jnp.ones(tokens.shape, bool)), state, context.cache)


def _siblings(key, log_q):
  one, two = jax.random.split(key)
  first = law.sample(one, log_q)
  rest = jax.nn.log_softmax(log_q.at[first].set(-jnp.inf))
  return jnp.stack([first, law.sample(two, rest)]), jnp.stack([log_q, rest])


def paths_drafter(table_logits, paths: int, gamma: int) -> Drafter:
  """Drafts independent chains over a table of order 1, path k drawn with `keys.path(key, k)`."""
  propose = functools.partial(_propose_paths, paths, gamma)
  return Drafter(
      propose=Partial(propose, table_logits), nodes=paths * gamma, depth=gamma, abstains=False,
      siblings=PATH_NOISE)


def _propose_paths(paths, gamma, table_logits, keys, params, state, context):
  del params
  last = jnp.take_along_axis(context.tokens, context.lengths[:, None] - 1, axis=1)[:, 0]

  def chain(last, keys, path):
    tokens, laws = [], []
    for depth in range(gamma):
      laws.append(logits.log_law(table_logits[last], logits.chain()))
      last = law.sample(keys_lib.path(keys[depth], path), laws[-1])
      tokens.append(last)
    return jnp.stack(tokens), jnp.stack(laws)

  each = jax.vmap(chain, (None, None, 0))
  tokens, log_q = jax.vmap(each, (0, 0, None))(last, keys, jnp.arange(paths))
  parents = jnp.asarray(topology.paths(paths, gamma), jnp.int32)
  tokens = tokens.reshape(tokens.shape[0], -1)
  return Proposal(
      Draft(tokens, jnp.broadcast_to(parents, tokens.shape), log_q.reshape(*tokens.shape, -1),
            jnp.ones(tokens.shape, bool)), state, context.cache)
