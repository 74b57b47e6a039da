"""Bounds the time of a decoding pass from below, and says how many rows it leaves nearly free.

    python -m experiments.roofline [--device=H100,cpu] [--parameters=70e9] [--batch=8] [--out=DIR]
    python -m experiments.roofline --parameters=8.03e9 --context=8192 --layers=32 --heads=32 \\
        --kv_heads=8 --head_size=128
    python -m experiments.roofline --config=configs/smollm2.py --device=cpu

Without flags: 8e9 parameters in bfloat16, on every accelerator with published figures. `cpu` is
this machine, measured in float32 in some seconds. With --config, parameters and attention are
those of its target, dtype and batch those of the configuration. With --out, roofline.png shows the
time of a pass against its rows.
"""

import functools
import pathlib

import jax
import numpy as np
from absl import flags

from specjax import theory
from specjax.launch import app, build, config as config_lib, errors, record
from specjax.measure import machine
from specjax.report import roofline as report
from specjax.types import Error

CPU = "cpu"

_CONFIG = config_lib.define(None)
_DEVICE = flags.DEFINE_list(
    "device", None,
    f"comma-separated: {', '.join(theory.DEVICES)}, {CPU}; all but the last by default")
_PARAMETERS = flags.DEFINE_float("parameters", None, "parameters that a pass reads; 8e9 by default")
_DTYPE = flags.DEFINE_string(
    "dtype", None, "of weights, cache and arithmetic; bfloat16 by default, on a cpu float32")
_BATCH = flags.DEFINE_integer(
    "batch", None, "sequences decoded together; 1 by default", lower_bound=1)
_CONTEXT = flags.DEFINE_integer(
    "context", 0, "cached tokens of each sequence", lower_bound=0)
_ROWS = flags.DEFINE_integer(
    "rows", 1, "tokens of each sequence that the pass scores: gamma + 1", lower_bound=1)
_SHAPE = {
    name: flags.DEFINE_integer(name, None, f"{meaning}; needed with --context", lower_bound=1)
    for name, meaning in (
        ("layers", "layers of the model"), ("heads", "attention heads"),
        ("kv_heads", "heads of keys and values"), ("head_size", "size of a head"))}


def main(_):
  model = _model()
  found, left_out = {}, []
  for name in _DEVICE.value or theory.DEVICES:
    dtype = model["dtype"] or ("float32" if name == CPU else "bfloat16")
    device = machine.measure() if name == CPU else _known(name)
    if _DEVICE.value is None and dtype not in device.peak:
      left_out.append(name)
      continue
    bound = functools.partial(
        theory.roofline, device, model["parameters"], dtype, model["batch"],
        context=_CONTEXT.value, attention=model["attention"])
    found[name] = report.Bounds(dtype, device.source, bound(rows=_ROWS.value), bound)
  if app.OUT.value is not None:
    (pathlib.Path(app.OUT.value) / "roofline.png").write_bytes(report.png(found))
  print(report.table(found))
  if left_out:
    print(f"\nwithout a published peak for {model['dtype']}: {', '.join(left_out)}")
  print(report.LEGEND)
  app.emit("roofline", dict(
      **model, context=_CONTEXT.value, rows=_ROWS.value,
      devices={name: dict(dtype=each.dtype, source=each.source, **each.step._asdict())
               for name, each in found.items()},
      manifest=record.manifest(app.SEED.value)))


def _model() -> dict:
  """Parameters, dtype, batch and attention, of --config or of the flags."""
  shape = {name: holder.value for name, holder in _SHAPE.items()}
  given = {n: v for n, v in shape.items() if v is not None}
  if _CONFIG.value is None:
    if given and len(given) < len(shape):
      missing = ", ".join(f"--{name}" for name in shape if name not in given)
      raise Error(f"{missing}: missing beside the rest")
    if _CONTEXT.value and not given:
      raise Error("--context needs --layers, --heads, --kv_heads and --head_size, or --config")
    return dict(
        parameters=8e9 if _PARAMETERS.value is None else _PARAMETERS.value, dtype=_DTYPE.value,
        batch=1 if _BATCH.value is None else _BATCH.value,
        attention=theory.Attention(**given) if given else None)
  if given or _PARAMETERS.value is not None:
    raise Error("--config names a target, whose parameters and attention need no flags")
  config = config_lib.read(_CONFIG)
  model = build.load_model(config.target, config.dtype)
  c = model.config
  if not c.num_layers:
    raise Error(f"--config: a roofline is that of a transformer, and {model.source} is none")
  sizes = {name: sum(np.size(leaf) for leaf in jax.tree.leaves(part))
           for name, part in model.params.items()}
  parameters = sum(sizes.values()) - (0 if c.tied_head else sizes["embedding"])
  return dict(
      parameters=float(parameters), dtype=_DTYPE.value or config.dtype,
      batch=config.batch_size if _BATCH.value is None else _BATCH.value,
      attention=theory.Attention(c.num_layers, c.num_heads, c.num_kv_heads, c.head_dim))


def _known(name: str) -> theory.Device:
  if name not in theory.DEVICES:
    raise Error(
        f"--device: there is no {name!r}{errors.nearest(name, [*theory.DEVICES, CPU])}")
  return theory.DEVICES[name]


if __name__ == "__main__":
  app.run(main)
