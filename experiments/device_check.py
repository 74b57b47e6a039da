"""What this device promises: the audit in short, and plain against speculative decoding.

    ./scripts/gpu_check.sh           # on a machine with a CUDA device, at most 8 minutes
    ./scripts/gpu_check.sh --small   # a toy, anywhere

Random weights in the shape of the default model, float32 and bfloat16. Strict mode must hold bit
for bit on a device for this to end with exit code 0; the rest is measured and printed.
"""

import functools
import sys

import jax
import tqdm
from absl import flags

from experiments.audits import audit, models
from specjax import decode, keys, loading, logits, verify
from specjax.launch import app, record, registry
from specjax.measure import timing
from specjax.types import Params

_SMALL = flags.DEFINE_bool("small", False, "a toy model and few tokens")
_WINDOW, _GAMMA, _REPEATS = 8, 3, 3


def main(_):
  tokens = 16 if _SMALL.value else 128
  result = dict(device=str(jax.devices()[0].device_kind), window=_WINDOW)
  for dtype in ("float32", "bfloat16"):
    audited = models.load("tiny" if _SMALL.value else "random", dtype)
    layers = 1 if _SMALL.value else 8
    grid = [audit.Case(drafter, gamma, "gumbel", t, window, batch, batch > 1)
            for drafter, gamma, t, window, batch in [
                ("ngram", 3, 0.0, _WINDOW, 1), (f"layer_skip:{layers}", 7, 0.7, _WINDOW, 1),
                ("ngram", 7, 0.7, _WINDOW, 4), ("ngram", 3, 0.7, 0, 4)]]
    with tqdm.tqdm(total=len(grid), unit="case", desc=dtype, file=sys.stderr) as bar:
      findings = audit.audit(audited, grid, keys.from_seed(app.SEED.value), tokens, bar.update)
    result[dtype] = dict(
        cases=[dict(f.case._asdict(), tokens=f.tokens, mismatches=f.mismatches,
                    unequal_logits=f.unequal_prints, divergences=f.divergences) for f in findings],
        strict_holds=all(f.holds for f in findings if f.case.strict),
        times=_times(audited, tokens))
    print(f"{dtype}: strict mode {'holds' if result[dtype]['strict_holds'] else 'FAILS'};"
          f" seconds for {tokens} tokens: {result[dtype]['times']}")
  result["manifest"] = record.manifest(app.SEED.value)
  app.emit("device_check", result)
  if not all(result[dtype]["strict_holds"] for dtype in ("float32", "bfloat16")):
    sys.exit(1)


def _times(audited: audit.Audited, tokens: int) -> dict:
  """Median seconds of one prompt, in turn, compilation excluded; a drafter that never agrees
  beside one that always does, since random weights say nothing about acceptance."""
  model, cold = audited.model, logits.temperature(0.0)
  target, key, params = model.target(), keys.from_seed(app.SEED.value), Params(model.params)

  def speculative(drafter):
    built = registry.drafter(drafter, _GAMMA, model, loading.load)
    return decode.speculative(target, built.drafter, verify.token(), cold)

  decoders = dict(
      plain=decode.autoregressive(target, cold),
      plain_strict=decode.autoregressive(target, cold, strict=_WINDOW),
      ngram=speculative("ngram"), itself=speculative(f"layer_skip:{model.config.num_layers}"))
  prompt, lengths = decode.pad(audited.prompts[:1])
  parts = {
      name: functools.partial(
          timing.seconds_of, decode.generate, decoder, key, params, prompt, lengths, tokens)
      for name, decoder in decoders.items()}
  medians = timing.medians(timing.in_turn(parts, _REPEATS))
  return {name: round(seconds, 4) for name, seconds in medians.items()}


if __name__ == "__main__":
  app.run(main)
