"""A rule or a drafter of the user's own, by the name of the function that makes it.

`MODULE:FUNCTION` is a dotted module, found in the current folder or among what is installed, and a
function of it. Whatever goes wrong in there is told as one paragraph with the place in that file:
whoever wrote it knows it better than a traceback through this package does.
"""

import importlib
import os
import sys
from typing import Any, Callable

from specjax.launch.errors import closest, nearest, told
from specjax.types import Error


def parts(spec: str) -> tuple[str, str, str] | None:
  """(module, function, numbers) of `MODULE:FUNCTION[:NUMBERS]`; None if it is nothing like it."""
  module, _, rest = spec.partition(":")
  function, _, numbers = rest.partition(":")
  named = all(part.isidentifier() for part in (*module.split("."), function))
  return (module, function, numbers) if named else None


def find(module: str, function: str, key: str, known) -> Callable:
  """The function; its module is imported.

  Args:
    module, function: their names.
    key: the flag that names them, for messages.
    known: names that may have been meant instead of the module's.

  Raises:
    Error: there is no such module or function, or the module cannot be imported.
  """
  what, here = f"{key} {module}:{function}", os.getcwd()
  if here not in sys.path:
    sys.path.insert(0, here)
  importlib.invalidate_caches()  # the file may be younger than the last look into its folder
  try:
    imported = importlib.import_module(module)
  except (Exception, SystemExit) as error:
    if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
      meant = closest(module, known)
      hint = f"; did you mean {meant!r}?" if meant else ""
      raise Error(
          f"{what}: there is no module {error.name!r} in {here} or among what is installed{hint}"
      ) from error
    raise Error(f"{what}: the module cannot be imported: {told(error)}") from error
  if not callable(make := getattr(imported, function, None)):
    own = [name for name, value in vars(imported).items() if callable(value) and name[0] != "_"]
    hint = nearest(function, own) if own else ", nor any other"
    raise Error(f"{what}: {module} has no function {function!r}{hint}")
  return make


def call(function: Callable, arguments: tuple, what: str) -> Any:
  """What the function returns.

  Raises:
    Error: it does not take the arguments, or raises an error.
  """
  try:
    return function(*arguments)
  except (Exception, SystemExit) as error:
    raise Error(f"{what}: {told(error)}") from error
