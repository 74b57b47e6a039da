"""What an audit found, as a table and as plain data."""

from experiments.audits import audit
from specjax.launch.text_table import text_table

_LEGEND = f"""
tokens: compared with plain decoding of the same seed. parted: prompts whose texts differ.
gap: between the two best scores where texts part, the largest.
bits: positions whose logits have the same bits as those of plain decoding (strict mode).
In normal mode a text may part where the gap of the scores is below {audit.NEAR_TIE}."""


def as_data(findings: list[audit.Finding]) -> dict:
  """All findings and their sums, strict and normal mode apart."""
  return dict(
      holds=all(f.holds for f in findings),
      strict=_totals([f for f in findings if f.case.strict]),
      normal=_totals([f for f in findings if not f.case.strict]), near_tie=audit.NEAR_TIE,
      cases=[dict(f.case._asdict(), tokens=f.tokens, mismatches=f.mismatches,
                  unequal_logits=f.unequal_prints, divergences=f.divergences, holds=f.holds)
             for f in findings])


def table(findings: list[audit.Finding]) -> str:
  """A row for each case, a line for each text that parts, and what the columns mean."""
  rows = []
  for f in findings:
    c = f.case
    bits = f"{f.prints - f.unequal_prints} of {f.prints}" if f.prints else "-"
    gap = f"{max(gap for *_, gap in f.divergences):.1e}" if f.divergences else "-"
    rows.append([
        c.drafter, str(c.gamma), c.rule, str(c.temperature),
        f"W = {c.strict}" if c.strict else "normal", str(c.batch_size), str(f.tokens),
        str(f.mismatches), gap, bits, "holds" if f.holds else "FAILS"])
  parted = [
      f"{f.case.drafter}, gamma {f.case.gamma}, T = {f.case.temperature}: prompt {prompt} "
      f"parts at answer token {position}, gap of the two best scores {gap:.1e}"
      for f in findings for prompt, position, gap in f.divergences]
  shown = text_table(
      ["drafter", "gamma", "rule", "T", "mode", "batch", "tokens", "parted", "gap", "bits",
       "verdict"], rows)
  return "\n".join([shown, *parted, _LEGEND])


def _totals(findings: list[audit.Finding]) -> dict:
  return dict(
      tokens=sum(f.tokens for f in findings), mismatches=sum(f.mismatches for f in findings),
      logits_compared=sum(f.prints for f in findings),
      logits_unequal=sum(f.unequal_prints for f in findings),
      largest_gap=max((gap for f in findings for *_, gap in f.divergences), default=None),
      holds=all(f.holds for f in findings))
