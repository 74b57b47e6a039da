"""Tells a mistake of the user's from a bug of ours, and words the former as one paragraph.

The library raises `types.Error` for what the user gave; any other error, a ValueError out of jax or
of our own arithmetic among them, is a bug and keeps its traceback.
"""

import difflib
import importlib
import pathlib
import traceback

import jax
from absl import flags

from specjax.types import Error

# A file that is missing, unreadable or full is the user's to mend wherever it was opened.
_OF_THE_USER = (Error, OSError, flags.Error)
_PACKAGE = str(pathlib.Path(__file__).parents[1])


def is_user_error(error: BaseException) -> bool:
  """True if `error` speaks to the user, False if it is a bug whose traceback is wanted."""
  return isinstance(error, _OF_THE_USER) or _is_out_of_memory(error)


def paragraph(error: BaseException) -> str:
  """The message of `error` as one paragraph, line breaks and indents removed."""
  if _is_out_of_memory(error):
    told = " ".join(str(error).split())[:200]
    return f"out of memory: choose a smaller model, batch_size, max_new_tokens or gamma ({told})"
  if isinstance(error, OSError) and error.strerror:
    named = f"{error.filename}: " if error.filename is not None else ""
    return f"{named}{error.strerror}"
  if isinstance(error, LookupError) and error.args:
    return " ".join(str(error.args[0]).split())  # str() of a KeyError would add quotes
  return " ".join(str(error).split()) or type(error).__name__


def told(error: BaseException) -> str:
  """What the user's own code raised, and where in the file that we called."""
  outside = [
      frame for frame in traceback.extract_tb(error.__traceback__)
      if not frame.filename.startswith((_PACKAGE, importlib.__file__, "<"))]
  lines = [frame.lineno for frame in outside if frame.filename == outside[0].filename]
  place = f" ({outside[0].filename}, line {lines[-1]})" if outside else ""
  return f"{type(error).__name__}: {error}{place}"


def nearest(word: str, known) -> str:
  """A tail for an error message: the known word nearest to `word`, or all of them."""
  close = closest(word, known)
  return f"; did you mean {close!r}?" if close else f"; known are {', '.join(sorted(known))}"


def closest(word: str, known) -> str | None:
  """The known word that `word` was probably meant to be."""
  return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def _is_out_of_memory(error: BaseException) -> bool:
  return isinstance(error, MemoryError) or (
      isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error))
