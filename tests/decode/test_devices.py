"""Another process, and four devices in place of one, give the same tokens."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """
import jax
import numpy as np

from specjax import decode, drafters, keys, logits, verify
from specjax.models import transformer
from specjax.types import Params
from tests.decode import toys

target = transformer.target(toys.TINY)
drafter = drafters.layer_skip(transformer.early_exit(toys.TINY, 1), 3)
for rule, strict in ((verify.gumbel(), True), (verify.block(), False)):
  decoder = decode.speculative(target, drafter, rule, logits.temperature(5.0), strict)
  found = decode.generate(
      decoder, keys.from_seed(3), Params(toys.tiny_params(1)), np.array([[1, 2, 3]]),
      np.array([3]), 40)
  print(found.tokens.tolist())
print(jax.device_count())
"""


def output(devices: int) -> list[str]:
  flag = f"--xla_force_host_platform_device_count={devices}"
  done = subprocess.run(
      [sys.executable, "-c", SCRIPT], cwd=ROOT, check=True, capture_output=True, text=True,
      timeout=1200,
      env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flag, "PYTHONPATH": str(ROOT)})
  return done.stdout.splitlines()


@pytest.fixture(scope="module")
def outputs():
  return output(1), output(4)


def test_the_tokens_are_the_same(outputs):
  one, four = outputs
  assert one[:2] == four[:2] and len(set(one[:2])) == 2
  assert (one[-1], four[-1]) == ("1", "4")
