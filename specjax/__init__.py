"""Speculative decoding in JAX: rules with exact proofs, seed-exact text, honest speed.

The parts below are imported when they are first used, so `import specjax` alone loads no JAX.
"""

import importlib
import typing

if typing.TYPE_CHECKING:  # what editors and type checkers see
  from specjax import (
      decode, drafters, exact, keys, loading, logits, models, theory, train, types, verify)

__version__ = "0.1.0"  # setup.py reads it here

__all__ = [
    "__version__", "decode", "drafters", "exact", "keys", "loading", "logits", "models", "theory",
    "train", "types", "verify"]


def __getattr__(name: str):
  if name in __all__:
    return importlib.import_module(f"specjax.{name}")
  import difflib  # not needed but here
  close = difflib.get_close_matches(name, __all__, n=1)
  hint = f"did you mean {close[0]!r}?" if close else f"its parts are {', '.join(__all__[1:])}"
  raise AttributeError(f"module 'specjax' has no attribute {name!r}; {hint}")


def __dir__() -> list[str]:
  return sorted(__all__)
