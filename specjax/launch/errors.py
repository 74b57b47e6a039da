"""Tells a mistake of the user's from a bug of ours, and words the former as one paragraph.

The library raises ValueError for bad input; so do jax and numpy when *our* code hands them the
wrong thing. Only the first kind is a message for the user: an error counts as one if a `raise`
statement of our own packages threw it. Everything else keeps its traceback.
"""

import linecache

import jax
from absl import flags

_OWN_PACKAGES = ("specjax", "experiments")
# A file that is missing, unreadable or full is the user's to mend wherever it was opened.
_ALWAYS = (OSError, flags.Error)
_IF_RAISED_BY_US = (ValueError, ArithmeticError, LookupError, ImportError)


def is_user_error(error: BaseException) -> bool:
  """True if `error` speaks to the user, False if it is a bug whose traceback is wanted."""
  if isinstance(error, _ALWAYS) or _is_out_of_memory(error):
    return True
  return isinstance(error, _IF_RAISED_BY_US) and _raised_by_us(error)


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


def _is_out_of_memory(error: BaseException) -> bool:
  return isinstance(error, MemoryError) or (
      isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error))


def _raised_by_us(error: BaseException) -> bool:
  trace = error.__traceback__
  if trace is None:
    return False
  while trace.tb_next is not None:
    trace = trace.tb_next
  module = trace.tb_frame.f_globals.get("__name__", "")
  source = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
  ours = module == "__main__" or module.split(".")[0] in _OWN_PACKAGES
  return ours and source.lstrip().startswith("raise ")
