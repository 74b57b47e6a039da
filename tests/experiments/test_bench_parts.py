"""The parts of `experiments.bench`: peers and what they are given, passes, kernels, times."""

import pathlib
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.benchmarks import export, kernels, opponents, peers, tables, worker
from specjax import decode, drafters, logits, verify
from specjax.launch import registry
from specjax.loading import gguf_file, gguf_model, hf_directory, hf_model, tensors
from specjax.loading.model import Model
from specjax.measure import stub, timing
from specjax.models import transformer
from specjax.models.config import ModelConfig, RopeScaling
from specjax.types import Params

SHAPE = dict(
    vocab_size=40, hidden_size=32, mlp_size=48, num_layers=2, num_heads=4, num_kv_heads=2,
    head_dim=8, max_length=512)


def fake_llama(folder: pathlib.Path) -> None:
  """A llama_cpp whose next token is the last one plus the number of tokens read, modulo 11."""
  (folder / "llama_cpp.py").write_text('''
import ctypes
GGML_TYPE_F32 = 0
class Llama:
  def __init__(self, path, n_ctx, **more):
    print("chatter on stdout")
    self.ctx, self.read = self, []
  def reset(self):
    self.read = []
  def eval(self, tokens):
    self.read += tokens
  def n_vocab(self):
    return 11
def llama_get_logits_ith(ctx, index):
  scores = (ctypes.c_float * 11)()
  scores[(ctx.read[-1] + len(ctx.read)) % 11] = 1
  return ctypes.cast(scores, ctypes.POINTER(ctypes.c_float))
''')
  information = folder / "llama_cpp_python-9.9.dist-info"
  information.mkdir()
  (information / "METADATA").write_text("Name: llama-cpp-python\nVersion: 9.9\n")


def peer(folder, name="llama.cpp", eos=(3,)):
  return peers.Peer(name, sys.executable, folder, threads=1, context=64, eos=eos)


def test_a_peer_is_asked_over_a_pipe(tmp_path, monkeypatch):
  fake_llama(tmp_path)
  monkeypatch.setenv("PYTHONPATH", str(tmp_path))
  with peer(tmp_path) as running:
    assert running.versions == {"llama-cpp-python": "9.9"}
    reply = running.decode([5, 1], 4, {})  # 1 + 2, and 3 is the end of a text
    assert reply.tokens == [3] and reply.timed == 1 and reply.seconds > 0
    # The memory of the one before is gone: 4 + 1, 5 + 2, 7 + 3, 10 + 4 modulo 11.
    assert running.decode([4], 4, {}).tokens == [5, 7, 10, 3]
    process = running._process
  assert process.wait(5) == 0


def test_a_missing_peer_says_what_is_missing(tmp_path, monkeypatch):
  (tmp_path / "llama_cpp.py").write_text("raise ImportError('no llama here')")
  monkeypatch.setenv("PYTHONPATH", str(tmp_path))
  with pytest.raises(peers.Missing, match="no llama here"):
    peer(tmp_path)


def test_a_broken_peer_shows_its_last_words(tmp_path, monkeypatch):
  fake_llama(tmp_path)
  monkeypatch.setenv("PYTHONPATH", str(tmp_path))
  with peer(tmp_path) as running:
    with pytest.raises(ValueError, match="llama.cpp broke down.*IndexError"):
      running.decode([], 4, {})


def test_the_clock_starts_after_the_first_block():
  clock = worker._Clock()
  for size in (7, 2, 3, 1):  # the prompt, then what each round made
    clock.put(types.SimpleNamespace(numel=lambda: size))
  clock.end()
  assert clock.first == 2 and len(clock.times) == 3
  assert clock.times == sorted(clock.times)


def model(**more) -> Model:
  config = ModelConfig(**SHAPE, **more)
  params = transformer.init_params(config, jax.random.key(0))
  keys = iter(jax.random.split(jax.random.key(1), 200))
  noisy = jax.tree.map(lambda x: x + jax.random.normal(next(keys), x.shape), params)
  return Model(config, noisy, None, "somewhere", "0" * 64)


VARIANTS = {
    "llama": dict(), "untied": dict(tied_head=False, rope_theta=5e5, norm_eps=1e-6),
    "qwen2": dict(qkv_bias=True), "qwen3": dict(qk_norm=True),
    "biased": dict(qkv_bias=True, out_bias=True)}


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_written_reads_as_the_same_model(tmp_path, name):
  written = model(**VARIANTS[name])
  export.gguf_file(written, tmp_path / "model.gguf")
  file = gguf_file.read(tmp_path / "model.gguf")
  config = gguf_model.config(file, "float32")
  assert config == written.config
  same(written.params, tensors.assemble(config, gguf_model.tensors(file, config), "file"))

  export.hugging_face(written, tmp_path)
  path = tmp_path / "config.json"
  config = hf_model.config(path, hf_directory.read_json(path), "float32")
  assert config == written.config
  stored = hf_directory.tensors(hf_directory.shards(tmp_path))
  same(written.params, tensors.assemble(config, stored, "folder"))


def same(params, others):
  jax.tree.map(np.testing.assert_array_equal, params, others)


def test_stretched_frequencies_are_refused(tmp_path):
  stretched = model(rope_scaling=RopeScaling("linear", 2.0))
  for write in (export.hugging_face, export.gguf_file):
    with pytest.raises(ValueError, match="stretched"):
      write(stretched, tmp_path)


def test_names_of_drafters_elsewhere():
  assert set(opponents.COUNTERPARTS) <= set(registry.DRAFTERS)
  assert opponents.mode_of("ngram", 5, 8, None) == (
      "transformers prompt lookup", dict(prompt_lookup_num_tokens=5, max_matching_ngram_size=3))
  for spec, layers in (("layer_skip", 4), ("layer_skip:3", 3)):
    assert opponents.mode_of(spec, 5, 8, None) == (
        "transformers early exit", dict(gamma=5, assistant_early_exit=layers))
  assert opponents.mode_of("path/of/model", 2, 8, pathlib.Path("x")) == (
      "transformers assisted", dict(gamma=2, assistant="x"))


def test_every_model_of_a_decoder_is_replaced():
  config = ModelConfig(**SHAPE)
  target, second = transformer.target(config), transformer.early_exit(config, 1)
  transform = logits.temperature(0.0)
  prompt = np.arange(16, dtype=np.int32)[None]
  for drafter in (drafters.layer_skip(second, 3), drafters.second_model(target, 3)):
    without = stub.without_models(decode.speculative(target, drafter, verify.token(), transform))
    # No parameters: whoever still ran a model would fail.
    generation = decode.generate(
        without, jax.random.key(0), Params(None, None), prompt, np.array([16]), 21)
    assert np.asarray(generation.tokens)[0].tolist() == [i % 16 for i in range(21)]
    assert int(generation.stats.rounds[0]) == 6  # four tokens a round, every guess right


@pytest.mark.parametrize("temperature, top_k, top_p", [(1, 50, 1.0), (1, 97, 0.9), (0.7, 7, 0.8)])
def test_sorting_is_an_honest_opponent(temperature, top_k, top_p):
  scores = jax.random.normal(jax.random.key(0), (4, 97)) * 3
  scores = scores.at[0].set(jnp.round(scores[0]))  # ties
  chain = logits.chain(
      logits.temperature(temperature), logits.top_k(top_k), logits.top_p(top_p))
  np.testing.assert_allclose(
      kernels.by_sorting(scores, temperature, top_k, top_p), logits.log_law(scores, chain),
      rtol=1e-5, atol=1e-6)


def test_kernels_in_small():
  found = kernels.transforms(rows=2, vocab=300, repeats=1)
  assert found.same and len(found.ratio) == 3
  assert all(found.ratio[name] == b / a for name, (a, b) in found.seconds.items())
  assert "keep the same tokens" in tables.logits(found)
  assert "DIFFERENT TOKENS" in tables.logits(found._replace(same=False))
  judged = kernels.verification(["token", "gumbel"], batch=2, gamma=3, vocab=50, repeats=1)
  assert list(judged.ratio) == ["token", "gumbel"]
  assert all(
      judged.ratio[name] == judged.seconds[name] / judged.copy_seconds for name in judged.ratio)
  assert "B = 2, gamma = 3, V = 50" in tables.verify(judged)


def test_times_are_taken_in_turn():
  calls = []
  part = lambda name: lambda: calls.append(name) or float(len(calls))
  times = timing.in_turn({"a": part("a"), "b": part("b")}, 2)
  assert "".join(calls) == "ab" "ba" "ab"  # the first two are discarded
  assert times == {"a": [4.0, 5.0], "b": [3.0, 6.0]}
  assert timing.medians(times) == {"a": 4.5, "b": 4.5}


def test_goals():
  assert tables.Goal("x", 2.0, True, 2.0).met and not tables.Goal("x", 1.9, True, 2.0).met
  assert tables.Goal("x", 1.4, False, 1.4).met and not tables.Goal("x", 1.5, False, 1.4).met
  assert not tables.Goal("x", float("nan"), True, 0.0).met
  shown = tables.goals([tables.Goal("x", 1.5, False, 1.4)])
  assert "MISSED" in shown and "<= 1.4" in shown
