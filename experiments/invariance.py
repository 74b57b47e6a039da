"""Audits that the same seed gives the same text, whatever drafts it.

    python -m experiments.invariance               # the default model, at least 20 000 tokens
    python -m experiments.invariance --full        # at least 100 000 tokens
    python -m experiments.invariance --model=tiny  # random weights of a toy, within a minute

Every drafter, gamma, temperature, batch size and place in a batch is held against plain decoding
with the same seed: in strict mode every token and the bits of every logit must agree, in normal
mode texts may part only where the two best scores of the target nearly tie.
"""

import sys

import tqdm
from absl import flags

from experiments.audits import audit, findings as findings_lib, models
from specjax import keys
from specjax.launch import app, record

_MODEL = flags.DEFINE_enum(
    "model", "default", models.NAMES,
    "default: SmolLM2; random: its shape with random weights (no download); tiny: a toy")
_DTYPE = flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "of the weights")
_FULL = flags.DEFINE_bool("full", False, "at least 100 000 tokens instead of 20 000")
_WINDOW = flags.DEFINE_integer("window", 8, "rows of the strict window", lower_bound=2)


def main(_):
  audited = models.load(_MODEL.value, _DTYPE.value)
  tiny = _MODEL.value == "tiny"
  widest = _WINDOW.value - 1
  gammas = sorted({1, min(3, widest), widest})
  grid = audit.cases(
      layers=1 if tiny else 8, gammas=gammas, temperatures=(0.0, 0.7, 1.0), strict=_WINDOW.value,
      batch=4)
  tokens = 24 if tiny else 480 if _FULL.value else 96
  with tqdm.tqdm(total=len(grid), unit="case", file=sys.stderr) as bar:
    findings = audit.audit(audited, grid, keys.from_seed(app.SEED.value), tokens, bar.update)
  print(findings_lib.table(findings))
  result = findings_lib.as_data(findings)
  result["manifest"] = record.manifest(
      app.SEED.value, dict(model=_MODEL.value, dtype=_DTYPE.value, window=_WINDOW.value))
  app.emit("invariance", result)
  if not result["holds"]:
    sys.exit(1)


if __name__ == "__main__":
  app.run(main)
