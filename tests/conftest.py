"""Strict promotion for the whole suite: a silent broadcast or up-cast is an error here."""

import jax
import pytest


@pytest.fixture(autouse=True)
def strict_promotion():
  with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
    yield
