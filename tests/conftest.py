"""The settings of the whole suite.

A silent broadcast or up-cast is an error here, compiled programs are kept between runs, and tests
marked `full` run only with --full.
"""

import jax
import pytest

from specjax import loading
from specjax.loading import default

# Most of the suite's time is compilation.
jax.config.update("jax_compilation_cache_dir", str(default.cache_directory() / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def pytest_addoption(parser):
  parser.addoption("--full", action="store_true", help="run also the tests marked `full`")


def pytest_configure(config):
  config.addinivalue_line("markers", "full: a proof that takes long; runs only with --full")


def pytest_collection_modifyitems(config, items):
  if config.getoption("--full"):
    return
  for item in items:
    if item.get_closest_marker("full"):
      item.add_marker(pytest.mark.skip(reason="takes long; runs with --full"))


@pytest.fixture(autouse=True)
def strict_promotion():
  with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
    yield


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
  """jax keeps every compiled program; a process that keeps thousands runs out of memory maps."""
  yield
  jax.clear_caches()


@pytest.fixture(scope="session")
def default_model():
  """The default model, loaded once for the whole session; downloaded if the cache lacks it."""
  return loading.default_model()


@pytest.fixture(autouse=True, scope="module")
def compile_quickly(request):
  """No optimisation where nothing is about arithmetic and compiling is nearly all that is done."""
  folder = request.module.__name__.rpartition(".")[0]
  quick = folder in ("tests.launch", "tests.measure", "tests.sweep")
  jax.config.update("jax_disable_most_optimizations", quick)
  yield
  jax.config.update("jax_disable_most_optimizations", False)
