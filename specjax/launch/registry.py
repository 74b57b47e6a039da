"""Methods by name, as a configuration gives them: `token`, `lenient:0.8`, `layer_skip:4`."""

import inspect
import pathlib
from typing import Callable

from specjax import drafters, loading, verify
from specjax.launch.config import nearest
from specjax.loading import characters
from specjax.models import transformer
from specjax.types import Drafter, Error, PyTree

DRAFTERS = ("ngram", "layer_skip", "smollm2", "table")
TABLE = "table:"  # and an order: a model of characters


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
  """The rule `NAME` or `NAME:NUMBER,NUMBER`, numbers in the order of its arguments.

  Raises:
    Error: no such rule (lists those there are), or numbers that it does not take.
  """
  name, _, numbers = spec.partition(":")
  if name not in RULES:
    raise Error(f"config.rule: no rule {name!r}{nearest(name, RULES)}")
  build = getattr(verify, name)
  takes = _numbers(build)
  needed = sum(p.default is p.empty for p in takes)
  given = numbers.split(",") if numbers else []
  if not needed <= len(given) <= len(takes):
    expected = ", ".join(p.name for p in takes) or "no numbers"
    raise Error(f"config.rule {spec!r}: {name} takes {expected}, got {len(given)} numbers")
  what = f"config.rule {spec!r}"
  return build(*(_number(text, what, p.annotation) for p, text in zip(takes, given)))


def table(spec: str) -> loading.Model:
  """The model of characters `table:ORDER`.

  Raises:
    Error: no such order.
  """
  return characters.load(_number(spec.removeprefix(TABLE), repr(spec), int))


def drafter(
    spec: str, gamma: int, model: loading.Model, load: Callable[[str], loading.Model],
    stop_below: float | None = None) -> tuple[Drafter, PyTree, dict[str, str]]:
  """The drafter, its parameters, and the sha256 of its weights by name (empty if it has none).

  Args:
    spec: `ngram`; `layer_skip:LAYERS` (half of the target's layers if no number is given); or a
      second model: its path, `smollm2` for the default model, or `table:ORDER`.
    gamma: tokens to draft, at least 1.
    model: the target.
    load: path -> a second model.
    stop_below: as `drafters.layer_skip` takes it; None for drafts of gamma tokens.

  Raises:
    Error: neither a name nor a path, or a number that does not fit.
    LoadError: a second model that cannot be loaded or has another vocabulary.
  """
  name, _, number = spec.partition(":")
  if spec == "ngram":
    if stop_below is not None:
      raise Error(
          "config.stop_below: prompt lookup copies tokens and has no probabilities to stop by")
    return drafters.ngram(gamma), None, {}
  if name == "layer_skip":
    if not model.config.num_layers:
      raise Error(f"config.drafter {spec!r}: {model.source} has no layers to skip")
    layers = model.config.num_layers // 2 or 1
    if number:
      layers = _number(number, f"config.drafter {spec!r}", int)
    if not 1 <= layers <= model.config.num_layers:
      raise Error(
          f"config.drafter {spec!r}: the target has layers 1 to {model.config.num_layers}")
    exit_model = transformer.early_exit(model.config, layers)
    return drafters.layer_skip(exit_model, gamma, stop_below), None, {}
  if not _is_second_model(spec):
    raise _no_drafter(spec)
  second = load(spec)
  loading.check_same_vocabulary(model, second)
  built = drafters.second_model(second.target(), gamma, stop_below)
  return built, second.params, {"drafter": second.sha256}


def check_drafter(spec: str) -> None:
  """Raises Error if `spec` is neither a drafter's name nor a path; needs no model."""
  if spec.partition(":")[0] not in DRAFTERS and not pathlib.Path(spec).exists():
    raise _no_drafter(spec)


def _is_second_model(spec: str) -> bool:
  return spec == "smollm2" or spec.startswith(TABLE) or pathlib.Path(spec).exists()


def _no_drafter(spec: str) -> Error:
  return Error(
      f"config.drafter: {spec!r} is neither the path of a model nor a drafter"
      f"{nearest(spec.partition(':')[0], DRAFTERS)}")


def _number(text: str, what: str, kind):
  try:
    return kind(text)
  except ValueError:
    article = "an integer" if kind is int else "a number"
    raise Error(f"{what}: {text!r} is not {article}") from None
