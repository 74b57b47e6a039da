"""A decoding loop compiled for four devices: two sums a layer, nothing gathered."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESHES = ((1, 4), (2, 2), (4, 1))  # data, model
LAYERS = 2
SCRIPT = """
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from specjax.models import partition, transformer
from tests.models import toys

CONFIG = toys.but(
    vocab_size=1009, hidden_size=64, mlp_size=96, num_layers=2, num_heads=8, num_kv_heads=4,
    head_dim=32, qkv_bias=True, out_bias=True, qk_norm=True, max_length=2048)
TARGET, PARAMS = transformer.target(CONFIG), toys.params_of(CONFIG)
BATCH, WIDTH, CAPACITY = 4, 4, 1024


def decoding(params, cache, tokens, lengths):
  def round_(state):
    cache, tokens, lengths = state
    output = TARGET.forward(params, cache, tokens, lengths)
    return output.cache, jnp.argmax(output.logits, -1).astype(jnp.int32), lengths + 1

  return lax.while_loop(lambda state: state[2][0] < 8, round_, (cache, tokens, lengths))


def laid_out(mesh, specs):
  tokens = jnp.asarray(toys.tokens_of(BATCH, WIDTH))
  state = PARAMS, TARGET.init(PARAMS, BATCH, CAPACITY), tokens, jnp.arange(BATCH, dtype=jnp.int32)
  put = lambda array, spec: jax.device_put(array, NamedSharding(mesh, spec))
  cache = jax.tree.map(lambda array: put(array, specs["cache"]), state[1])
  params = jax.tree.map(put, state[0], specs["params"])
  return params, cache, put(state[2], specs["rows"]), put(state[3], specs["rows"])


def measure(shape):
  devices = np.array(jax.devices()[:shape[0] * shape[1]]).reshape(shape)
  state = laid_out(Mesh(devices, ("data", "model")), dict(
      params=partition.params(PARAMS), cache=partition.CACHE, rows=partition.ROWS))
  compiled = jax.jit(decoding, donate_argnums=1).lower(*state).compile()
  memory, cache = compiled.memory_analysis(), jax.tree.leaves(state[1])[0].addressable_shards[0]
  return dict(
      text=compiled.as_text(), temporary=memory.temp_size_in_bytes,
      cache=2 * CONFIG.num_layers * cache.data.nbytes,
      tokens=np.asarray(compiled(*state)[1]).tolist())


print(json.dumps([measure(shape) for shape in json.loads(sys.argv[1])]))
"""


def run(script, meshes):
  environment = {
      **os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT),
      "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
  done = subprocess.run(
      [sys.executable, "-c", script, json.dumps(meshes)], cwd=ROOT, check=True,
      capture_output=True, text=True, timeout=600, env=environment)
  return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def programs():
  alone, *shared = run(SCRIPT, [(1, 1), *MESHES])
  return alone, dict(zip(MESHES, shared))


def collectives(text):
  """(kind, type of the result) of each exchange of numbers between devices; not the loop's test."""
  exchanges = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
  found = re.findall(rf"= (\w+\[[\d,]*\])\S* ({exchanges})(?:-start)?\(", text)
  return [(kind, result) for result, kind in found if not result.startswith("s32")]


@pytest.mark.parametrize("mesh", MESHES)
def test_a_layer_has_two_sums_and_gathers_nothing(programs, mesh):
  data, model = mesh
  columns = 4 * 4 // data
  expected = [("all-reduce", f"f32[64,{columns}]")] * 2 * LAYERS if model > 1 else []
  assert collectives(programs[1][mesh]["text"]) == expected


@pytest.mark.parametrize("mesh", MESHES)
def test_the_cache_is_updated_where_it_lies(programs, mesh):
  program = programs[1][mesh]
  assert program["temporary"] < program["cache"] / 4


@pytest.mark.parametrize("mesh", MESHES)
def test_the_tokens_are_those_of_one_device(programs, mesh):
  alone, shared = programs
  assert shared[mesh]["tokens"] == alone["tokens"]


def test_gates_on_one_device_and_their_partners_on_another_are_noticed():
  """What the rows of a matrix [gate; up] are when they are shared out."""
  halves = 'partition._PARAMS["gate_up"] = PartitionSpec("model")\n'
  (program,) = run(SCRIPT.replace("print(json", halves + "print(json"), [(2, 2)])
  assert len(collectives(program["text"])) > 2 * LAYERS
