"""Trees of arrays on disk: parameters, optimiser states, random keys.

A checkpoint is restored against the tree that the caller expects. Structure, shapes and dtypes are
compared here, because orbax's own strict mode lets a deep target be half filled from a shallow
checkpoint.
"""

import os
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from specjax.loading.error import LoadError
from specjax.types import PyTree


def _is_key(leaf) -> bool:
  return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _flat(tree: PyTree) -> dict[str, Any]:
  """The leaves by their path, which is how a checkpoint names them."""
  leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
  return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _describe(flat: dict[str, Any]) -> dict[str, str]:
  """Shape and dtype of each leaf as text; the dtype of a typed key names its implementation."""
  return {name: f"{leaf.dtype}{list(leaf.shape)}" for name, leaf in flat.items()}


def _stored(leaf):
  return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _checkpointer() -> ocp.Checkpointer:
  return ocp.Checkpointer(ocp.CompositeCheckpointHandler())


def save(path: str | os.PathLike, tree: PyTree):
  """Writes a tree of arrays and typed keys to a new directory, in one step.

  Raises:
    ValueError: the directory exists.
  """
  flat = _flat(tree)
  with _checkpointer() as checkpointer:
    checkpointer.save(Path(path).absolute(), ocp.args.Composite(
        arrays=ocp.args.StandardSave({name: _stored(leaf) for name, leaf in flat.items()}),
        leaves=ocp.args.JsonSave(_describe(flat))))


def _check(path: Path, found: dict[str, str], expected: dict[str, str]):
  """Raises LoadError at the first leaf that is missing, unexpected or of another kind."""
  for name in expected | found:
    if found.get(name) != expected.get(name):
      raise LoadError(
          f"{path}: the checkpoint does not fit: {name} should be "
          f"{expected.get(name, 'absent')}, found {found.get(name, 'nothing')}.")


def restore(path: str | os.PathLike, like: PyTree) -> PyTree:
  """Reads a tree that `save` wrote.

  Args:
    path: The directory.
    like: The expected tree: arrays, or `jax.ShapeDtypeStruct` with their sharding if any.

  Raises:
    LoadError: there is no checkpoint, it is damaged, or a leaf is missing, unexpected, or has
      another shape or dtype.
  """
  path = Path(path).absolute()
  expected = _flat(like)
  try:
    with _checkpointer() as checkpointer:
      found = checkpointer.restore(path, ocp.args.Composite(leaves=ocp.args.JsonRestore())).leaves
      _check(path, found, _describe(expected))
      targets = {
          name: jax.eval_shape(_stored, leaf) if _is_key(leaf) else leaf
          for name, leaf in expected.items()}
      arrays = checkpointer.restore(
          path, ocp.args.Composite(arrays=ocp.args.StandardRestore(targets))).arrays
  except LoadError:
    raise
  except Exception as error:  # Orbax, tensorstore and the file system each raise their own.
    raise LoadError(
        f"{path}: not a usable checkpoint: {type(error).__name__}: {str(error)[:300]}") from error
  leaves = [
      jax.random.wrap_key_data(arrays[name], impl=jax.random.key_impl(leaf))
      if _is_key(leaf) else arrays[name] for name, leaf in expected.items()]
  return jax.tree.unflatten(jax.tree.structure(like), leaves)
