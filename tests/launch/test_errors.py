"""Which errors are messages for the user, and how they read."""

import errno

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl import flags

from specjax import decode, logits
from specjax.launch import errors
from specjax.launch.config import DecodeConfig
from specjax.loading import load, LoadError
from specjax.types import Error


def caught(call) -> BaseException:
  try:
    call()
  except Exception as error:
    return error
  raise AssertionError("nothing was raised")


@pytest.mark.parametrize("call, expected", [
    (lambda: DecodeConfig(gamma=-1), True),
    (lambda: load("/no/such/model"), True),
    (lambda: logits.temperature(-1), True),
    (lambda: decode.check_finite(np.array([True]), np.array([3])), True),
    (lambda: open("/no/such/file"), True),
    (lambda: jnp.zeros(3).reshape(2, 2), False),  # a ValueError or TypeError out of jax
    (lambda: DecodeConfig(gama=1), False),
    (lambda: dict()["key"], False),
    (lambda: int("x"), False),
])
def test_a_bug_keeps_its_traceback(call, expected):
  assert errors.is_user_error(caught(call)) is expected


def test_flag_errors_are_the_users():
  assert errors.is_user_error(flags.IllegalFlagValueError("bad"))


def test_too_little_memory_is_the_users():
  assert errors.is_user_error(MemoryError())
  assert errors.is_user_error(jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 9 TiB"))
  assert not errors.is_user_error(jax.errors.JaxRuntimeError("INTERNAL: x"))


@pytest.mark.parametrize("error, text", [
    (Error("two\n   lines"), "two lines"),
    (LoadError("file.gguf: too short"), "file.gguf: too short"),
    (OSError(errno.ENOENT, "No such file", "a.jsonl"), "a.jsonl: No such file"),
    (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
    (KeyError("no key `x`"), "no key `x`"),
    (Error(), "Error"),
    (MemoryError("3 GiB"), "out of memory: choose a smaller model, batch_size, max_new_tokens or "
                           "gamma (3 GiB)"),
])
def test_a_message_is_one_paragraph(error, text):
  assert errors.paragraph(error) == text
