"""What this device promises: the audit in short, and plain against speculative decoding.

    ./scripts/gpu_check.sh           # on a machine with a CUDA device, at most 8 minutes
    ./scripts/gpu_check.sh --small   # a toy, anywhere

Random weights in the shape of the default model, float32 and bfloat16. Strict mode must hold bit
for bit on a device for this to end with exit code 0; the rest is measured and printed.
"""

import statistics
import sys
import time

import jax
import numpy as np
import tqdm
from absl import flags

from experiments.audits import audit, subjects
from specjax import decode, drafters, keys, logits, verify
from specjax.launch import app, record
from specjax.models import transformer

_SMALL = flags.DEFINE_bool("small", False, "a toy model and few tokens")
_WINDOW, _GAMMA, _REPEATS = 8, 3, 3


def main(_):
  tokens = 16 if _SMALL.value else 128
  result = dict(device=str(jax.devices()[0].device_kind), window=_WINDOW)
  for dtype in ("float32", "bfloat16"):
    subject = subjects.make("tiny" if _SMALL.value else "random", dtype)
    layers = 1 if _SMALL.value else 8
    grid = [audit.Case(drafter, gamma, "gumbel", t, window, batch, batch > 1)
            for drafter, gamma, t, window, batch in [
                ("ngram", 3, 0.0, _WINDOW, 1), (f"layer_skip:{layers}", 7, 0.7, _WINDOW, 1),
                ("ngram", 7, 0.7, _WINDOW, 4), ("ngram", 3, 0.7, 0, 4)]]
    with tqdm.tqdm(total=len(grid), unit="case", desc=dtype, file=sys.stderr) as bar:
      findings = audit.audit(subject, grid, keys.from_seed(app.SEED.value), tokens, bar.update)
    result[dtype] = dict(
        cases=[dict(f.case._asdict(), tokens=f.tokens, mismatches=f.mismatches,
                    unequal_logits=f.unequal_prints, divergences=f.divergences) for f in findings],
        strict_holds=all(f.holds for f in findings if f.case.strict),
        times=_times(subject, tokens))
    print(f"{dtype}: strict mode {'holds' if result[dtype]['strict_holds'] else 'FAILS'};"
          f" seconds for {tokens} tokens: {result[dtype]['times']}")
  result["manifest"] = record.manifest(app.SEED.value)
  app.emit("device_check", result)
  if not all(result[dtype]["strict_holds"] for dtype in ("float32", "bfloat16")):
    sys.exit(1)


def _times(subject: audit.Subject, tokens: int) -> dict:
  """Median seconds of one prompt, interleaved, compilation excluded; a drafter that never agrees
  beside one that always does, since random weights say nothing about acceptance."""
  target = transformer.target(subject.config)
  whole = transformer.early_exit(subject.config, subject.config.num_layers)
  cold = logits.temperature(0.0)
  decoders = dict(
      plain=decode.autoregressive(target, cold),
      plain_strict=decode.autoregressive(target, cold, strict=_WINDOW),
      ngram=decode.speculative(target, drafters.ngram(_GAMMA), verify.token(), cold),
      itself=decode.speculative(target, drafters.layer_skip(whole, _GAMMA), verify.token(), cold))
  prompt = np.array([subject.prompts[0]])
  times = {name: [] for name in decoders}
  for repeat in range(_REPEATS + 1):
    for name, decoder in decoders.items():
      begin = time.perf_counter()
      jax.block_until_ready(decode.generate(
          decoder, jax.random.key(0), subject.params, prompt, np.array([prompt.shape[1]]), tokens))
      if repeat:  # the first one compiles
        times[name].append(time.perf_counter() - begin)
  return {name: round(statistics.median(seconds), 4) for name, seconds in times.items()}


if __name__ == "__main__":
  app.run(main)
