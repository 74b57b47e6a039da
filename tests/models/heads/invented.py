"""Random parameters for the network of any config, in the tree that it asks for."""

import jax
import jax.numpy as jnp

from specjax.models import cache as cache_lib
from specjax.models.heads import dflash, eagle, medusa, mtp

_NETWORKS = {
    eagle.Eagle1Config: eagle.Eagle1, eagle.Eagle3Config: eagle.Eagle3, mtp.MtpConfig: mtp.Mtp,
    dflash.DFlashConfig: dflash.DFlash, medusa.MedusaConfig: medusa.Medusa}


def _run(config, module):
  """Everything that the network can be asked, so that every parameter is made."""
  one = jnp.zeros(1, jnp.int32)
  if isinstance(config, medusa.MedusaConfig):
    return module(jnp.zeros((1, config.hidden_size)))
  size = getattr(config, "target_size", config.layer.hidden_size)
  features = jnp.zeros((1, 1, len(config.captures), size))
  cache = cache_lib.empty(config.layer, 1, 16)
  if not isinstance(config, dflash.DFlashConfig):
    return module(cache, one[None], module.fuse(features), one)
  block = module.draft(module.read(cache, features, one), one, one)
  if config.markov_rank:
    module.correct(block.logits[:, 0], one)
  if config.confidence:
    module.trust(block.hidden[:, 0], one)


def params(config, seed: int = 0):
  """Complete parameters: the embedding and the LM head are among them."""
  module = _NETWORKS[type(config)](config)
  return module.init(jax.random.key(seed), method=lambda module: _run(config, module))["params"]


def shapes(config):
  """The same tree of shapes alone."""
  return jax.tree.map(lambda x: x.shape, jax.eval_shape(lambda: params(config)))
