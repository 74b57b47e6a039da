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

from experiments.audits import audit, models
from specjax import keys
from specjax.launch import app, record
from specjax.launch.text_table import text_table

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
  _print(findings)
  result = _result(findings)
  result["manifest"] = record.manifest(
      app.SEED.value, dict(model=_MODEL.value, dtype=_DTYPE.value, window=_WINDOW.value))
  app.emit("invariance", result)
  if not result["holds"]:
    sys.exit(1)


def _result(findings: list[audit.Finding]) -> dict:
  return dict(
      holds=all(f.holds for f in findings),
      strict=_totals([f for f in findings if f.case.strict]),
      normal=_totals([f for f in findings if not f.case.strict]), near_tie=audit.NEAR_TIE,
      cases=[dict(f.case._asdict(), tokens=f.tokens, mismatches=f.mismatches,
                  unequal_logits=f.unequal_prints, divergences=f.divergences, holds=f.holds)
             for f in findings])


def _totals(findings: list[audit.Finding]) -> dict:
  return dict(
      tokens=sum(f.tokens for f in findings), mismatches=sum(f.mismatches for f in findings),
      logits_compared=sum(f.prints for f in findings),
      logits_unequal=sum(f.unequal_prints for f in findings),
      largest_gap=max((gap for f in findings for *_, gap in f.divergences), default=None),
      holds=all(f.holds for f in findings))


def _print(findings: list[audit.Finding]) -> None:
  rows = []
  for f in findings:
    c = f.case
    bits = f"{f.prints - f.unequal_prints} of {f.prints}" if f.prints else "-"
    gap = f"{max(gap for *_, gap in f.divergences):.1e}" if f.divergences else "-"
    rows.append([
        c.drafter, str(c.gamma), c.rule, str(c.temperature),
        f"W = {c.strict}" if c.strict else "normal", str(c.batch_size), str(f.tokens),
        str(f.mismatches), gap, bits, "holds" if f.holds else "FAILS"])
  print(text_table(
      ["drafter", "gamma", "rule", "T", "mode", "batch", "tokens", "parted", "gap", "bits",
       "verdict"], rows))
  for f in findings:
    for prompt, position, gap in f.divergences:
      print(f"{f.case.drafter}, gamma {f.case.gamma}, T = {f.case.temperature}: prompt {prompt} "
            f"parts at answer token {position}, gap of the two best scores {gap:.1e}")
  print(
      "\ntokens: compared with plain decoding of the same seed. parted: prompts whose texts differ."
      "\ngap: between the two best scores where texts part, the largest."
      "\nbits: positions whose logits have the same bits as those of plain decoding (strict mode)."
      f"\nIn normal mode a text may part where the gap of the scores is below {audit.NEAR_TIE}.")


if __name__ == "__main__":
  app.run(main)
