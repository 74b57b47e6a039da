"""Published drafters of random weights, to be read and to be damaged."""

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import safetensors.numpy

GOLDENS = Path(__file__).parents[1] / "goldens" / "drafters"


def damaged(folder: Path, name: str, change=None, tensors=None, drop=()) -> Path:
  """A copy of a golden with other config values (None removes a key) and other tensors."""
  path = folder / name
  shutil.copytree(GOLDENS / name, path, ignore=shutil.ignore_patterns("*.md", "*.npz"))
  config = json.loads((path / "config.json").read_text())
  config |= change or {}
  config = {key: value for key, value in config.items() if value is not None}
  (path / "config.json").write_text(json.dumps(config))
  arrays = safetensors.numpy.load_file(path / "model.safetensors")
  arrays = {key: value for key, value in arrays.items() if key not in drop} | (tensors or {})
  safetensors.numpy.save_file(arrays, path / "model.safetensors")
  return path


def arrays(name: str) -> dict[str, np.ndarray]:
  return safetensors.numpy.load_file(GOLDENS / name / "model.safetensors")


def shapes_of(params) -> dict:
  """The tree of shapes, without what only maps the vocabulary."""
  return jax.tree.map(lambda x: x.shape, {k: v for k, v in params.items() if k != "target_ids"})
