"""The run manifest: all that is needed to say what a number came from, as plain JSON."""

import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys

import jax

from specjax.launch import strict_json

_PACKAGES = ("specjax", "jax", "jaxlib", "flax", "numpy", "tokenizers", "gguf", "safetensors")


def manifest(seed: int, config=None, models: dict[str, str] | None = None) -> dict:
  """The record of this process and run.

  Args:
    seed: the seed of the run.
    config: a dataclass or dict; kept whole, with the sha256 of its sorted JSON.
    models: name -> sha256 of the file behind each model in use.
  """
  config = strict_json.plain(config if config is not None else {})
  device = jax.devices()[0]
  return dict(
      command=sys.argv,
      seed=seed,
      config=config,
      config_sha256=digest(config),
      models=models or {},
      git=_git(pathlib.Path(__file__).resolve()),
      versions=dict(python=platform.python_version(), **_versions()),
      prng=dict(
          implementation=jax.config.jax_default_prng_impl,
          threefry_partitionable=jax.config.jax_threefry_partitionable),
      matmul_precision=jax.config.jax_default_matmul_precision,
      enable_x64=jax.config.jax_enable_x64,
      xla_flags=os.environ.get("XLA_FLAGS", ""),
      device=dict(
          platform=device.platform, kind=device.device_kind, count=jax.device_count(),
          host=platform.machine(), cores=os.cpu_count()))


def digest(value) -> str:
  """The sha256 of a plain value, the same for every order of its keys."""
  text = json.dumps(strict_json.plain(value), sort_keys=True, allow_nan=False)
  return hashlib.sha256(text.encode()).hexdigest()


def _versions() -> dict[str, str | None]:
  versions = {}
  for name in _PACKAGES:
    try:
      versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
      versions[name] = None
  return versions


def _git(file: pathlib.Path) -> dict | None:
  """Commit and dirty flag of the checkout that `file` is tracked in, None if there is none.

  An installed copy may lie inside somebody else's repository; its commit would be a false witness.
  """
  def git(*arguments):
    return subprocess.run(
        ["git", "-C", str(file.parent), *arguments], capture_output=True, text=True, check=True,
        timeout=10).stdout.strip()

  try:
    git("ls-files", "--error-unmatch", file.name)
    return dict(
        commit=git("rev-parse", "HEAD"),
        dirty=bool(git("status", "--porcelain", "--untracked-files=no")))
  except (OSError, subprocess.SubprocessError):
    return None
