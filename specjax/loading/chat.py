"""Chat templates: programs out of somebody else's file, run in Jinja's sandbox.

The sandbox closes the way to Python objects. What it leaves open is waste: a short template can
loop for years, print without end or double a string forty times, so steps and output are counted
and memory is bounded too.
"""

import contextlib
import functools
import itertools
import json
import resource

import jinja2
from jinja2 import nodes, sandbox

from specjax.loading.error import LoadError

_MAX_SOURCE = 1 << 20  # characters of a template
_MAX_OUTPUT = 1 << 24  # characters of a rendered conversation, and of a repeated string
_MAX_STEPS = 1 << 18  # loop iterations and macro calls
_MAX_MEMORY = 1 << 30  # bytes that it may take while it runs
_STEPS = "count of steps"  # no template can name a variable with spaces in it


class _Environment(sandbox.ImmutableSandboxedEnvironment):
  """The sandbox, with repetition bounded."""

  intercepted_binops = frozenset(["*", "**"])

  def call_binop(self, context, operator, left, right):
    if operator == "**":
      raise sandbox.SecurityError("powers are not allowed")
    for sequence, times in ((left, right), (right, left)):
      if hasattr(sequence, "__len__") and isinstance(times, int):
        if len(sequence) * times > _MAX_OUTPUT:
          raise sandbox.SecurityError("a repeated sequence is too long")
    return super().call_binop(context, operator, left, right)


def _refuse(message):
  raise jinja2.TemplateError(message)


@jinja2.pass_context
def _count_step(context):
  if next(context.parent[_STEPS]) > _MAX_STEPS:
    raise sandbox.SecurityError(f"it takes more than {_MAX_STEPS} steps")


@contextlib.contextmanager
def _bounded_memory():
  """Turns what would take all memory into a MemoryError, whichever operation it is.

  Where the size of the process cannot be read (outside of Linux), nothing is bounded.
  """
  try:
    with open("/proc/self/statm", encoding="ascii") as file:
      now = int(file.read().split()[0]) * resource.getpagesize()
  except OSError:
    yield
    return
  soft, hard = resource.getrlimit(resource.RLIMIT_AS)
  limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
  resource.setrlimit(resource.RLIMIT_AS, (min([now + _MAX_MEMORY, *limits]), hard))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@functools.lru_cache(maxsize=8)
def _compile(source: str) -> jinja2.Template:
  """A template in which every loop iteration and macro call first counts a step.

  `strftime_now` is left out on purpose: a prompt must not depend on the day.
  """
  environment = _Environment(
      trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
  # Unlike Jinja's own filter, no HTML escapes: the reader is a model.
  environment.filters["tojson"] = functools.partial(json.dumps, ensure_ascii=False)
  environment.globals["raise_exception"] = _refuse
  environment.count_step = _count_step  # an attribute, because a template can shadow names
  tree = environment.parse(source)
  for node in tree.find_all((nodes.For, nodes.Macro)):
    step = nodes.Call(nodes.EnvironmentAttribute("count_step"), [], [], None, None)
    node.body.insert(0, nodes.ExprStmt(step, lineno=node.lineno))
  return environment.from_string(tree.set_environment(environment))


def render(source: str, messages: list[dict], add_generation_prompt: bool,
           strings: dict[str, str], file: str) -> str:
  """The text of a conversation.

  Raises:
    LoadError: the template is not valid, fails, refuses the conversation or wastes resources.
  """
  if len(source) > _MAX_SOURCE:
    raise LoadError(f"{file}: the chat template has {len(source)} characters; that is no template.")
  try:
    pieces, size = [], 0
    variables = strings | {
        "messages": messages, "add_generation_prompt": add_generation_prompt,
        _STEPS: itertools.count(1)}
    with _bounded_memory():
      for piece in _compile(source).generate(variables):
        pieces.append(piece)
        size += len(piece)
        if size > _MAX_OUTPUT:
          raise sandbox.SecurityError(f"it prints more than {_MAX_OUTPUT} characters")
    return "".join(pieces)
  except Exception as error:  # A template may fail in any way a program can.
    raise LoadError(
        f"{file}: the chat template failed: {type(error).__name__}: {error}.") from error
