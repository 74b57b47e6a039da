"""How the arrays of a model lie on a mesh with the axes `data` (rows) and `model` (features).

Each device has some KV heads with their query heads, and some features of the MLP, so a layer needs
two sums over the devices, one behind `out` and one behind `down` (Shoeybi et al. 2019,
arXiv 1909.08053, section 3).
"""

import jax
from jax.sharding import PartitionSpec

from specjax.types import PyTree

_PARAMS = {
    "qkv": PartitionSpec("model"),
    "qkv_bias": PartitionSpec("model"),
    "out": PartitionSpec(None, "model"),
    "gate_up": PartitionSpec(None, "model"),
    "down": PartitionSpec(None, "model"),
}
CACHE = PartitionSpec("data", "model")  # [B, KV, S, head_dim]
ROWS = PartitionSpec("data")  # [B, ...]


def params(tree: PyTree) -> PyTree:
  """The specification of each parameter of `models.transformer`, by its name.

  Names that are not listed (norms, biases behind a sum, embedding and head) are whole on every
  device.
  """
  return jax.tree_util.tree_map_with_path(
      lambda path, _: _PARAMS.get(path[-1].key, PartitionSpec()), tree)
