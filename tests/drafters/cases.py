"""Every drafter of the library, small, for the tests that all of them pass.

Whoever adds a drafter adds a line here.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from specjax import drafters
from specjax.drafters.template import template
from specjax.models import table, transformer
from specjax.models.heads import dflash, eagle, medusa, mtp
from specjax.types import Drafter, Params, Target
from tests.decode import toys
from tests.models.heads import invented

GAMMA = 3


class Case(NamedTuple):
  """A drafter with the target that it drafts for, and the parameters of both."""

  drafter: Drafter
  target: Target
  params: Params


def _tiny(drafter: Drafter, params=None, captures: tuple[int, ...] = ()) -> Case:
  target = transformer.target(toys.TINY, captures)
  return Case(drafter, target, Params(toys.tiny_params(0), params))


def _head(drafter: Drafter, config, **changes) -> Case:
  """A drafter over hidden states; what `changes` sets to None it leaves to the target."""
  params = invented.params(config) | changes
  params = {name: x for name, x in params.items() if x is not None}
  return _tiny(drafter, params, config.captures)


def _table(drafter: Drafter) -> Case:
  return Case(drafter, table.target(toys.random_table(0, order=2)), Params(None))


_OTHER = transformer.target(toys.TINY)
_EXIT = transformer.early_exit(toys.TINY, 1)
_PAIRS = jnp.asarray(np.random.default_rng(5).normal(size=(toys.VOCAB, toys.VOCAB)), jnp.float32)

_ONE_LAYER = dataclasses.replace(toys.TINY, num_layers=1)
_LAST = (toys.TINY.num_layers,)  # the hidden state after the final norm
_EAGLE1 = eagle.Eagle1Config(_ONE_LAYER, _LAST)
_EAGLE3 = eagle.Eagle3Config(
    dataclasses.replace(toys.TINY, num_layers=2, hidden_size=12), (1, 2), target_size=16,
    draft_vocab=8, fc_norm=True, norm_output=True)
_MTP = mtp.MtpConfig(_ONE_LAYER, _LAST)
_MEDUSA = medusa.MedusaConfig(16, 13, _LAST, GAMMA)
_DFLASH = dflash.DFlashConfig(
    dataclasses.replace(toys.TINY, num_layers=2, qk_norm=True), (1, 2), 16, block_size=4,
    mask_token=12, draft_vocab=13, windows=(5, None), causal=(True, False))
_DSPARK = dataclasses.replace(_DFLASH, block_size=3, from_anchor=True, markov_rank=4)

ALL = {
    "ngram": _tiny(drafters.ngram(GAMMA, shortest=1)),
    "template": _tiny(template(None, GAMMA)),
    "layer_skip": _tiny(drafters.layer_skip(_EXIT, GAMMA)),
    "layer_skip, stopping": _tiny(drafters.layer_skip(_EXIT, GAMMA, 0.05)),
    "second_model": _tiny(drafters.second_model(_OTHER, GAMMA), toys.tiny_params(1)),
    "second_model, stopping": _tiny(
        drafters.second_model(_OTHER, GAMMA, 0.05), toys.tiny_params(1)),
    "eagle1": _head(
        drafters.feature(eagle.eagle1(_EAGLE1), GAMMA), _EAGLE1, embedding=None, head=None),
    "eagle3": _head(
        drafters.feature(eagle.eagle3(_EAGLE3), GAMMA), _EAGLE3,
        target_ids=jnp.arange(1, 13, 12 / 8).astype(jnp.int32)),
    "mtp, stopping": _head(
        drafters.feature(mtp.mtp(_MTP), GAMMA, 0.002), _MTP, embedding=None, head=None),
    "medusa": _head(drafters.parallel_heads(_MEDUSA, GAMMA), _MEDUSA),
    "dflash": _head(drafters.block_diffusion(_DFLASH, GAMMA), _DFLASH),
    "dspark": _head(drafters.block_diffusion(_DSPARK, GAMMA), _DSPARK),
    "table": _table(table.drafter(toys.random_table(1, order=1), GAMMA)),
    "pairs without replacement": _table(toys.pairs_drafter(_PAIRS)),
    "paths": _table(toys.paths_drafter(_PAIRS, 2, GAMMA)),
}
