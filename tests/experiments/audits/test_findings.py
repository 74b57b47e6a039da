"""What is shown of an audit."""

from experiments.audits import audit, findings

STRICT = audit.Finding(
    audit.Case("ngram", 3, "gumbel", 0.7, 8, 1, False), tokens=48, mismatches=0, prints=48,
    unequal_prints=0, divergences=[])
NEAR = audit.Finding(
    audit.Case("layer_skip:1", 1, "token", 0.0, 0, 4, True), tokens=40, mismatches=1, prints=0,
    unequal_prints=0, divergences=[(2, 7, 3e-5)])
FAR = NEAR._replace(divergences=[(2, 7, 0.5)])


def test_sums_are_kept_apart_by_mode():
  result = findings.as_data([STRICT, STRICT._replace(unequal_prints=2), NEAR])
  assert result["strict"] == dict(
      tokens=96, mismatches=0, logits_compared=96, logits_unequal=2, largest_gap=None, holds=False)
  assert result["normal"] == dict(
      tokens=40, mismatches=1, logits_compared=0, logits_unequal=0, largest_gap=3e-5, holds=True)
  assert not result["holds"] and len(result["cases"]) == 3
  assert not findings.as_data([STRICT, FAR])["holds"]


def test_each_case_is_a_row_and_each_difference_a_line():
  lines = findings.table([STRICT, NEAR, FAR]).splitlines()
  assert "| 48 of 48 | holds   |" in lines[2] and "| W = 8  |" in lines[2]
  assert "| 3.0e-05 |" in lines[3] and "| normal |" in lines[3] and "| FAILS   |" in lines[4]
  assert lines[5] == (
      "layer_skip:1, gamma 1, T = 0.0: prompt 2 parts at answer token 7, "
      "gap of the two best scores 3.0e-05")
