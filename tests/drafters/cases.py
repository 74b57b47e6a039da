"""Every drafter of the library, small, for the tests that all of them pass.

Whoever adds a drafter adds a line here.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from specjax import drafters
from specjax.drafters.template import template
from specjax.models import table, transformer
from specjax.types import Drafter, Params, Target
from tests.decode import toys

GAMMA = 3


class Case(NamedTuple):
  """A drafter with the target that it drafts for, and the parameters of both."""

  drafter: Drafter
  target: Target
  params: Params


def _tiny(drafter: Drafter, params=None, captures: tuple[int, ...] = ()) -> Case:
  target = transformer.target(toys.TINY, captures)
  return Case(drafter, target, Params(toys.tiny_params(0), params))


def _table(drafter: Drafter) -> Case:
  return Case(drafter, table.target(toys.random_table(0, order=2)), Params(None))


_OTHER = transformer.target(toys.TINY)
_EXIT = transformer.early_exit(toys.TINY, 1)
_PAIRS = jnp.asarray(np.random.default_rng(5).normal(size=(toys.VOCAB, toys.VOCAB)), jnp.float32)

ALL = {
    "ngram": _tiny(drafters.ngram(GAMMA, shortest=1)),
    "template": _tiny(template(None, GAMMA)),
    "layer_skip": _tiny(drafters.layer_skip(_EXIT, GAMMA)),
    "layer_skip, stopping": _tiny(drafters.layer_skip(_EXIT, GAMMA, 0.05)),
    "second_model": _tiny(drafters.second_model(_OTHER, GAMMA), toys.tiny_params(1)),
    "second_model, stopping": _tiny(
        drafters.second_model(_OTHER, GAMMA, 0.05), toys.tiny_params(1)),
    "table": _table(table.drafter(toys.random_table(1, order=1), GAMMA)),
    "pairs without replacement": _table(toys.pairs_drafter(_PAIRS)),
    "paths": _table(toys.paths_drafter(_PAIRS, 2, GAMMA)),
}
