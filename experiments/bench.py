"""Measures specjax against transformers and llama.cpp, and its own parts against their goals.

    python -m experiments.bench [--section=model,peers,logits,verify] [--json] [--out=DIR]
    python -m experiments.bench --section=peers --prompts=mini --peer_python=PATH/bin/python

Sections: `model`, the cost of wide passes and of what surrounds them; `peers`, decoding side by
side in one run; `logits`, transforms against their sorting version; `verify`, rules against a copy
of the laws they judge. The peers are the extra `peers` of the package (`pip install '.[peers]'`);
what is not installed is left out with a message. They may live in another environment:
--peer_python. Writes bench.md and bench.json into --out. About 15 minutes on two cores.
"""

import functools
import pathlib
import sys

from absl import flags

from experiments.benchmarks import decoders, sections, tables
from specjax import keys
from specjax.launch import app, config as config_lib, errors, record, registry
from specjax.types import Error

SECTIONS = ("model", "peers", "logits", "verify")
_ROOT = pathlib.Path(__file__).resolve().parents[1]

_CONFIG = config_lib.define(_ROOT / "configs" / "bench.py")
_SECTION = flags.DEFINE_list("section", list(SECTIONS), f"comma-separated: {', '.join(SECTIONS)}")
_DRAFTER = flags.DEFINE_list(
    "drafter", ["ngram", "layer_skip:10"], "drafters of the speculative decoders, comma-separated")
_PROMPTS = flags.DEFINE_list(
    "prompts", ["summarising", "extraction"], "prompt sets as in experiments.decode; first turns")
_REPEATS = flags.DEFINE_integer("repeats", 3, "repetitions of every measurement", lower_bound=1)
_PEER_PYTHON = flags.DEFINE_string(
    "peer_python", sys.executable, "the Python that has transformers and llama-cpp-python")
_RULE = flags.DEFINE_list("rule", ["token", "block"], "rules of the section `verify`")


def main(_):
  _refuse_unknown()
  result, measurements = _sections()
  texts, goals = [], []
  for name, measure in measurements.items():
    found = measure()
    print(found.text + "\n", flush=True)
    result[name] = found.result
    texts.append(found.text)
    goals += found.goals
  if goals:
    texts.append(tables.goals(goals))
    print(texts[-1])
  result["goals"] = [dict(goal._asdict(), met=goal.met) for goal in goals]
  if app.OUT.value is not None:
    (pathlib.Path(app.OUT.value) / "bench.md").write_text("\n\n".join(texts) + "\n", "utf-8")
  app.emit("bench", result)


def _sections() -> tuple[dict, dict]:
  """The manifest, and a function for each section that was asked for, in the order of SECTIONS."""
  key, repeats = keys.from_seed(app.SEED.value), _REPEATS.value
  measurements = {
      "logits": functools.partial(sections.logits, repeats),
      "verify": functools.partial(sections.verify, _RULE.value, repeats)}
  if {"model", "peers"} & set(_SECTION.value):
    bench = decoders.build(config_lib.read(_CONFIG), _DRAFTER.value, _PROMPTS.value)
    manifest = record.manifest(app.SEED.value, bench.config, bench.setup.models)
    measurements["model"] = functools.partial(sections.model, bench, key, repeats)
    measurements["peers"] = functools.partial(
        sections.peers, bench, key, repeats, _PEER_PYTHON.value)
  else:
    manifest = record.manifest(app.SEED.value)
  wanted = {name: measurements[name] for name in SECTIONS if name in _SECTION.value}
  return dict(manifest=manifest), wanted


def _refuse_unknown():
  if not _SECTION.value or not _RULE.value:
    raise Error(f"--section is one or more of {', '.join(SECTIONS)}, and --rule of the rules")
  for name in _SECTION.value:
    if name not in SECTIONS:
      raise Error(f"--section: {name!r} is none{errors.nearest(name, SECTIONS)}")
  for name in _RULE.value:
    registry.rule(name)


if __name__ == "__main__":
  app.run(main)
