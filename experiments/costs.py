"""Measures what passes and drafts cost on this device, and which gamma that makes the fastest.

    python -m experiments.costs [--drafter=ngram,layer_skip:10] [--config.batch_size=4] [--json]
    python -m experiments.costs --drafter=ngram,layer_skip:10 --remeasure

Costs are kept in $SPECJAX_CACHE/costs (~/.cache/specjax/costs) and are those that
--config.gamma=auto chooses by; --remeasure replaces them. One minute for a drafter the first time,
with the default model on two cores.
"""

import dataclasses
import functools

from absl import flags

from specjax.launch import app, build, config as config_lib, record
from specjax.measure import auto, cost_store
from specjax.report import cost_tables

_CONFIG = config_lib.define()
_DRAFTER = flags.DEFINE_list(
    "drafter", None, "drafters to compare, comma-separated; that of the configuration by default")
_REMEASURE = flags.DEFINE_bool(
    "remeasure", False, "measure again, and replace what $SPECJAX_CACHE/costs keeps of these "
    "drafters (~/.cache/specjax/costs where the variable is not set)")
_PROMPT = 64  # tokens


def main(_):
  config = dataclasses.replace(config_lib.read(_CONFIG), gamma=auto.PILOT_GAMMA, stop_below=0.0)
  load = functools.cache(build.load_model)
  found, kept, models = {}, {}, {}
  for drafter in _DRAFTER.value or [config.drafter]:
    chosen = dataclasses.replace(config, drafter=drafter)
    setup = build.build(chosen, load)
    limit = setup.plain.target.max_length or _PROMPT
    text = [0] * min(_PROMPT, limit // 2)  # what it says makes no difference
    rows = 1 if config.strict else config.batch_size
    found[drafter], kept[drafter] = cost_store.load_or_measure(
        setup, chosen, [text] * rows, again=_REMEASURE.value)
    models |= setup.models
  print(cost_tables.report(found, kept))
  app.emit("costs", dict(
      cost_tables.as_data(found, kept), manifest=record.manifest(app.SEED.value, config, models)))


if __name__ == "__main__":
  app.run(main)
