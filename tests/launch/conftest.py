"""What stands here is not about arithmetic, and compiling is nearly all that it does."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def compile_quickly(request):
  """Without most optimisations; the audit compares bits, and takes them as users get them."""
  jax.config.update("jax_disable_most_optimizations", "test_audit" not in request.module.__name__)
  yield
  jax.config.update("jax_disable_most_optimizations", False)
