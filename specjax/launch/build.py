"""From a configuration to the decoders that it describes."""

import functools
from typing import Callable, NamedTuple

from specjax import decode, loading, logits
from specjax.decode.decoder import STRICT_WINDOW
from specjax.launch import registry
from specjax.launch.config import AUTO, DecodeConfig
from specjax.types import Error, Params


class Setup(NamedTuple):
  """A target, decoded speculatively and plainly with the same parameters."""

  model: loading.Model
  params: Params
  speculative: decode.Decoder  # the plain one where gamma is 0
  plain: decode.Decoder
  models: dict[str, str]  # name -> sha256, for the manifest


def build(config: DecodeConfig, load: Callable[[str, str], loading.Model] | None = None) -> Setup:
  """Loads the models of a configuration and puts its decoders together.

  Args:
    config: the configuration.
    load: (path, dtype) -> the model, `load_model` by default. A caller that builds many
      configurations passes a cached one: decoders of one model then share compiled programs too.

  Raises:
    Error: a name, a path or a combination that does not exist.
    LoadError: a model that cannot be loaded.
  """
  refuse_impossible(config)
  rule = registry.rule(config.rule)  # a wrong name should not wait for a model to load
  load = load or load_model
  model = load(config.target, config.dtype)
  transform = logits.chain(
      logits.temperature(config.temperature), logits.top_k(config.top_k),
      logits.top_p(config.top_p), logits.min_p(config.min_p))
  models = {"target": model.sha256}
  if config.gamma == 0:
    plain = decode.autoregressive(model.target(), transform, config.strict)
    return Setup(model, Params(model.params), plain, plain, models)
  drafter, params, more = registry.drafter(
      config.drafter, config.gamma, model, functools.partial(load, dtype=config.dtype),
      config.stop_below or None)
  target = model.target(drafter.captures)
  return Setup(
      model, Params(model.params, params),
      decode.speculative(target, drafter, rule, transform, config.strict),
      decode.autoregressive(target, transform, config.strict), models | more)


def load_model(path: str, dtype: str) -> loading.Model:
  """The model at `path`, `table:ORDER`, or the default one if that is `smollm2` or empty."""
  if path.startswith(registry.TABLE):
    return registry.table(path)
  return loading.default_model(dtype) if path in ("", "smollm2") else loading.load(path, dtype)


def refuse_impossible(config: DecodeConfig) -> None:
  """Raises Error for keys that do not go together; needs no model."""
  if config.gamma == AUTO:
    raise Error(
        "config.gamma: there is nothing here to choose a number by, only experiments.decode takes "
        f"{AUTO!r}")
  if config.tree:
    raise Error(f"config.tree: there are no token trees yet, only chains; got {config.tree!r}")
  if config.strict and config.gamma >= STRICT_WINDOW:
    raise Error(
        f"config.gamma: the window of strict mode has {STRICT_WINDOW} rows, for the last token and "
        f"a draft of at most {STRICT_WINDOW - 1}; got {config.gamma}")
