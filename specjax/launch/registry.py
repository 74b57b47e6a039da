"""Rules and drafters by name, as a configuration gives them: `lenient:0.8`, `layer_skip:4`.

`DRAFTERS` is the one place that knows the drafters; the names in errors and in --help come from it.
Rules are the functions of `specjax.verify` that take nothing but numbers.
"""

import hashlib
import inspect
import pathlib
import sys
from typing import Callable, NamedTuple

from specjax import drafters, loading, verify
from specjax.launch import user_code
from specjax.launch.errors import nearest
from specjax.loading import characters
from specjax.models import transformer
from specjax.types import Drafter, Error, PyTree

TABLE = "table:"  # and an order: a model of characters


class Request(NamedTuple):
  """What a configuration asks of a drafter."""

  spec: str  # config.drafter
  gamma: int  # tokens to draft, at least 1
  model: loading.Model  # the target
  load: Callable[[str], loading.Model]  # path -> a second model
  stop_below: float | None  # config.stop_below, None where it is off

  @property
  def argument(self) -> str:
    """What stands behind the name."""
    return self.spec.partition(":")[2]


class Built(NamedTuple):
  """A drafter with what belongs to it."""

  drafter: Drafter
  params: PyTree = None
  models: dict[str, str] = {}  # name -> sha256 of the file behind it, for the manifest


class Family(NamedTuple):
  """One way to draft."""

  usage: str  # how config.drafter names it: NAME, NAME:ARGUMENT or NAME[:ARGUMENT]
  meaning: str  # what --help says of it
  build: Callable[[Request], Built]
  stops: bool  # takes config.stop_below

  @property
  def name(self) -> str:
    return self.usage.replace("[", ":").partition(":")[0]


def _ngram(request: Request) -> Built:
  return Built(drafters.ngram(request.gamma))


def _layer_skip(request: Request) -> Built:
  what, most = f"config.drafter {request.spec!r}", request.model.config.num_layers
  if not most:
    raise Error(f"{what}: {request.model.source} has no layers to skip")
  layers = _number(request.argument, what, int) if request.argument else most // 2 or 1
  if not 1 <= layers <= most:
    raise Error(f"{what}: the target has layers 1 to {most}")
  exit_model = transformer.early_exit(request.model.config, layers)
  return Built(drafters.layer_skip(exit_model, request.gamma, request.stop_below))


def _second_model(request: Request) -> Built:
  second = request.load(request.spec)
  loading.check_same_vocabulary(request.model, second)
  built = drafters.second_model(second.target(), request.gamma, request.stop_below)
  return Built(built, second.params, {"drafter": second.sha256})


def _own(request: Request) -> Built:
  module, function, _ = user_code.parts(request.spec)
  what = f"config.drafter {request.spec}"
  make = user_code.find(module, function, "config.drafter", DRAFTERS)
  result = user_code.call(make, (request.model, request.gamma), what)
  drafter, params = result if type(result) is tuple and len(result) == 2 else (result, None)
  if not isinstance(drafter, Drafter):
    raise Error(
        f"{what}: {function}(model, gamma) should return a Drafter, or a pair of a Drafter and its "
        f"parameters, got {result!r:.80}")
  return Built(drafter, params, {"drafter": _digest(module)})


DRAFTERS = {family.name: family for family in (
    Family("ngram", "prompt lookup: copies what followed the last tokens before", _ngram, False),
    Family("layer_skip[:LAYERS]", "the target's first layers; half of them without a number",
           _layer_skip, True),
    Family("smollm2", "the default model as a second model", _second_model, True),
    Family("table:ORDER", "a Markov table over characters, for such a target", _second_model, True),
)}
_BY_FORM = (  # what is no name
    Family("PATH", "a second model: a GGUF file or a Hugging Face directory", _second_model, True),
    Family("MODULE:FUNCTION", "a function of your own, called as FUNCTION(model, gamma) with the "
           "loaded target; returns a Drafter, or (Drafter, params)", _own, False),
)
_PATH, _OWN = _BY_FORM


def drafter(
    spec: str, gamma: int, model: loading.Model, load: Callable[[str], loading.Model],
    stop_below: float | None = None) -> Built:
  """The drafter `spec`, its parameters, and the sha256 of its weights or code by name.

  Args:
    spec: a name of `DRAFTERS` with its argument, the path of a second model, or MODULE:FUNCTION.
    gamma: tokens to draft, at least 1.
    model: the target.
    load: path -> a second model.
    stop_below: as `drafters.layer_skip` takes it; None for drafts of gamma tokens.

  Raises:
    Error: no such drafter, an argument that does not fit, a second model that cannot be loaded or
      has another vocabulary, or a function of the user's own that fails.
  """
  family = _family(spec)
  if stop_below is not None and not family.stops:
    raise Error(
        f"config.stop_below: the drafter {spec} cannot end a draft by its probability; leave it 0")
  return family.build(Request(spec, gamma, model, load, stop_below))


def check_drafter(spec: str) -> None:
  """Raises Error if `spec` is neither a drafter's name, a path nor a function; needs no model."""
  if _family(spec) is _OWN:
    module, function, _ = user_code.parts(spec)
    user_code.find(module, function, "config.drafter", DRAFTERS)


def _family(spec: str) -> Family:
  name, _, argument = spec.partition(":")
  if family := DRAFTERS.get(name):
    if bool(argument) is not (":" in family.usage) and "[" not in family.usage:
      raise Error(f"config.drafter: {spec!r} should be {family.usage}")
    return family
  if pathlib.Path(spec).exists():
    return _PATH
  if (own := user_code.parts(spec)) and not own[2]:
    return _OWN
  raise Error(
      f"config.drafter: {spec!r} is neither the path of a model nor a drafter"
      f"{nearest(name, DRAFTERS)}")


def drafters_help() -> str:
  """A line for each way to name a drafter."""
  return "\n".join(f"  {each.usage}: {each.meaning}" for each in (*DRAFTERS.values(), *_BY_FORM))


def _numbers(build) -> list[inspect.Parameter] | None:
  """The numbers that a constructor takes; None if it is none of a rule by itself."""
  if not inspect.isfunction(build):
    return None
  parameters = inspect.signature(build).parameters.values()
  numeric = [p for p in parameters if p.annotation in (int, float)]
  needed = {p.name for p in parameters if p.default is p.empty}
  return numeric if needed <= {p.name for p in numeric} else None


# What specjax.verify offers under a name, without what combines rules.
RULES = tuple(name for name in verify.__all__ if _numbers(getattr(verify, name)) is not None)


def rule(spec: str) -> verify.Rule:
  """The rule `NAME[:NUMBER,...]`, numbers in the order of its arguments, or one of the user's own.

  `MODULE:FUNCTION[:NUMBER,...]` is called as FUNCTION(NUMBER, ...) and returns a `verify.Rule`; a
  number of digits alone is an int, every other a float.

  Raises:
    Error: no such rule (lists those there are), numbers that it does not take, or a function of
      the user's own that fails.
  """
  name, _, numbers = spec.partition(":")
  if name not in RULES:
    if own := user_code.parts(spec):
      return _own_rule(spec, *own)
    raise Error(f"config.rule: no rule {name!r}{nearest(name, RULES)}")
  build = getattr(verify, name)
  takes = _numbers(build)
  needed = sum(p.default is p.empty for p in takes)
  texts = numbers.split(",") if numbers else []
  if not needed <= len(texts) <= len(takes):
    expected = ", ".join(p.name for p in takes) or "no numbers"
    raise Error(f"config.rule {spec!r}: {name} takes {expected}, got {len(texts)} numbers")
  what = f"config.rule {spec!r}"
  return build(*(_number(text, what, p.annotation) for p, text in zip(takes, texts)))


def _own_rule(spec: str, module: str, function: str, numbers: str) -> verify.Rule:
  what = f"config.rule {spec}"
  make = user_code.find(module, function, "config.rule", RULES)
  arguments = [_int_or_float(text, what) for text in numbers.split(",")] if numbers else []
  result = user_code.call(make, tuple(arguments), what)
  if not isinstance(result, verify.Rule):
    raise Error(f"{what}: {function} should return a specjax.verify.Rule, got {result!r:.80}")
  return result


def rules_help() -> str:
  """The rules with their numbers, those that may be left out in brackets, and the user's own."""
  return ", ".join([*map(_usage, RULES), "MODULE:FUNCTION[:NUMBER,...]"])


def _usage(name: str) -> str:
  takes = _numbers(getattr(verify, name))
  if not takes:
    return name
  numbers = ":" + ",".join(p.name.upper() for p in takes)
  return name + (numbers if takes[0].default is inspect.Parameter.empty else f"[{numbers}]")


def table(spec: str) -> loading.Model:
  """The model of characters `table:ORDER`.

  Raises:
    Error: no such order.
  """
  return characters.load(_number(spec.removeprefix(TABLE), repr(spec), int))


def _number(text: str, what: str, kind):
  try:
    return kind(text)
  except ValueError:
    article = "an integer" if kind is int else "a number"
    raise Error(f"{what}: {text!r} is not {article}") from None


def _int_or_float(text: str, what: str) -> int | float:
  return _number(text, what, int if text.strip().lstrip("+-").isdecimal() else float)


def _digest(module: str) -> str:
  """The sha256 of a module's file, or of its name where it has none."""
  file = getattr(sys.modules[module], "__file__", None)
  return hashlib.sha256(pathlib.Path(file).read_bytes() if file else module.encode()).hexdigest()
