"""Published drafters of random weights, and what their authors' code computes from them.

The README of each folder says by which code at which commit, and explains every array.
"""

import functools
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from specjax.loading import drafter_files, hf_directory, hf_model, tensors
from specjax.models import transformer

FOLDER = Path(__file__).parents[2] / "goldens" / "drafters"
TOLERANCE = dict(rtol=0, atol=2e-4)  # as the READMEs ask; float32 rounding is a third of it
CAPACITY = 64


@functools.cache
def expected(name: str) -> dict[str, np.ndarray]:
  with np.load(FOLDER / name / "expected.npz") as arrays:
    return dict(arrays)


@functools.cache
def target(name: str):
  """Config and parameters of the target `target_{name}`."""
  path = FOLDER / f"target_{name}"
  config = hf_model.config(
      path / "config.json", hf_directory.read_json(path / "config.json"), "float32")
  found = hf_directory.tensors(hf_directory.shards(path))
  return config, tensors.assemble(config, found, str(path))


def files(name: str) -> drafter_files.Files:
  return drafter_files.read(FOLDER / name)


def features(target_name: str, captures, tokens) -> np.ndarray:
  """The hidden states float[1, T, C, H] that the target has for tokens [T]."""
  config, params = target(target_name)
  model = transformer.target(config, tuple(captures))
  cache = model.init(params, 1, CAPACITY)
  output = model.forward(
      params, cache, row(tokens), jnp.zeros(1, jnp.int32), None, None)
  return output.features


def row(tokens) -> jnp.ndarray:
  return jnp.asarray(tokens, jnp.int32)[None]
