"""Assembling parameters: every wrong tensor is named with its file, its shape and the right one."""

import jax
import numpy as np
import pytest

from specjax.loading import LoadError, tensors
from specjax.models import transformer
from specjax.models.config import ModelConfig

SHAPE = dict(vocab_size=11, hidden_size=6, mlp_size=5, num_layers=2, num_heads=2, num_kv_heads=1,
             head_dim=4, max_length=16)


def parts_of(config: ModelConfig) -> dict[str, tensors.Tensor]:
  """Random tensors of a checkpoint of the config, by name."""
  rng = np.random.default_rng(0)
  parts = tensors._parts(tensors._layout(config))
  arrays = {part.name: rng.normal(size=part.shape).astype(np.float32) for part in parts}
  return {name: tensors.Tensor(x.shape, lambda x=x: x, "weights.bin") for name, x in arrays.items()}


@pytest.mark.parametrize("flags", [
    {}, {"tied_head": False}, {"qkv_bias": True}, {"qkv_bias": True, "out_bias": True},
    {"qk_norm": True, "dtype": "bfloat16"}])
def test_the_tree_is_the_one_of_the_transformer(flags):
  config = ModelConfig(**SHAPE, **flags)
  params = tensors.assemble(config, parts_of(config), "here")
  describe = lambda tree: jax.tree.map(lambda x: (x.shape, str(x.dtype)), tree)
  assert describe(params) == describe(transformer.param_shapes(config))


def test_every_part_has_its_place():
  config = ModelConfig(**SHAPE | dict(num_heads=6, num_kv_heads=2), qkv_bias=True)
  parts = parts_of(config)
  layer = tensors.assemble(config, parts, "here")["layer_1"]
  for kind, parameter in (("weight", "qkv"), ("bias", "qkv_bias")):
    q, k, v = (parts[f"model.layers.1.self_attn.{x}_proj.{kind}"].read() for x in "qkv")
    for head in range(6):  # query heads 0, 1, 2 read KV head 0
      rows = q[head * 4:(head + 1) * 4]
      np.testing.assert_array_equal(layer[parameter][head // 3, head % 3], rows)
    for head in range(2):
      rows = slice(head * 4, (head + 1) * 4)
      np.testing.assert_array_equal(layer[parameter][head, 3], k[rows])
      np.testing.assert_array_equal(layer[parameter][head, 4], v[rows])
  for place, name in enumerate(("gate", "up")):
    np.testing.assert_array_equal(
        layer["gate_up"][place], parts[f"model.layers.1.mlp.{name}_proj.weight"].read())


def test_parameters_do_not_share_memory_with_the_file():
  config = ModelConfig(**SHAPE)
  parts = parts_of(config)
  before = np.array(parts["model.norm.weight"].read())
  params = tensors.assemble(config, parts, "here")
  parts["model.norm.weight"].read()[:] = 0
  np.testing.assert_array_equal(params["final_norm"], before)


def assembled_without(config, parts, problem):
  with pytest.raises(LoadError, match=problem) as caught:
    tensors.assemble(config, parts, "here")
  assert "\n" not in str(caught.value)


def test_every_missing_tensor_is_named():
  config = ModelConfig(**SHAPE, qkv_bias=True, tied_head=False)
  parts = parts_of(config)
  for name in parts:
    rest = {k: v for k, v in parts.items() if k != name}
    assembled_without(config, rest, f"here: the tensor {name} is missing .1 of")


def test_every_wrong_shape_is_named_before_anything_is_read():
  config = ModelConfig(**SHAPE, qk_norm=True)
  parts = {name: part._replace(read=None) for name, part in parts_of(config).items()}
  for name, part in parts.items():
    wrong = parts | {name: part._replace(shape=(*part.shape, 1))}
    assembled_without(config, wrong, f"weights.bin: the tensor {name} should have shape .* found")


@pytest.mark.parametrize("extra", [
    "model.layers.0.self_attn.q_proj.bias", "model.layers.2.mlp.up_proj.weight",
    "blk.0.odd.weight"])
def test_a_tensor_without_a_place_is_refused(extra):
  config = ModelConfig(**SHAPE)
  parts = parts_of(config)
  more = parts | {extra: parts["model.norm.weight"]}
  assembled_without(config, more, f"found a tensor {extra}")


@pytest.mark.parametrize("extra", [
    "lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq"])
def test_a_redundant_tensor_is_left_out(extra):
  config = ModelConfig(**SHAPE)
  parts = parts_of(config)
  params = tensors.assemble(config, parts | {extra: parts["model.norm.weight"]}, "here")
  assert "head" not in params


def test_an_absurd_number_of_layers_is_refused_at_once():
  config = ModelConfig(**{**SHAPE, "num_layers": 10**9})
  assembled_without(config, parts_of(ModelConfig(**SHAPE)), "says 1000000000 layers")
