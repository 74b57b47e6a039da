"""Certificates of rules as tables and as plain data."""

import math

from specjax import exact
from specjax.exact import drafts
from specjax.launch.text_table import text_table
from specjax.types import PATH_NOISE, WITHOUT_REPLACEMENT

_PAIRS = ("AB", "P3", "S3")
_TREES = {  # the columns of the second table
    drafts.paths(2, 2): "2 paths of 2",
    drafts.paths(2, 2, PATH_NOISE): "2 paths of 2",
    drafts.paths(2, 2, drafts.JOINED): "2 paths of 2, joined",
    drafts.paths(2, 2, drafts.MERGED): "2 paths of 2, merged",
    drafts.tree((2, 1), WITHOUT_REPLACEMENT): "2x1, w/o replacement",
    drafts.tree((2, 2), WITHOUT_REPLACEMENT): "2x2, w/o replacement",
}
_LEGEND = """
max TV: total variation between the law of the text (one round and its completion to D + 1 tokens)
and the target's, worst over all systems and ways of drafting; lossless is <= 1e-12, for rounding.
E[tau]: accepted tokens, the extra token not counted, exact. short of best: tokens that the best
lossless rule for a chain of 3 accepts more, mean over the systems. Coupled rules flip no coins: of
gumbel max TV is the part of texts that differ from plain decoding's, of list_gumbel the lower
confidence bound of a simulation. greedy is lossless at temperature 0, for point masses. NO LAW: an
acceptance outside [0, 1], or NaN; --json and exact.certify name the system.
"""


def as_data(spec: str, rule, certificate: exact.Certificate) -> dict:
  """A certificate as plain data."""
  return dict(
      rule=spec, claims_lossless=rule.lossless, lossless=certificate.lossless,
      passed=certificate.lossless or not (rule.lossless or math.isnan(certificate.max_tv)),
      max_tv=certificate.max_tv,
      block_efficiency=certificate.block_efficiency, short_of_best=certificate.distance,
      how=certificate.how, seconds=certificate.seconds,
      cases=[dict(
          drafts=case.scheme.name, max_tv=case.max_tv, worst=case.worst, systems=len(case.systems),
          block_efficiency=case.block_efficiency, short_of_bound=case.distance,
          accepted={pair: case.at(pair) for pair in _PAIRS}) for case in certificate.cases])


def summary(certificates: dict[str, exact.Certificate], rules: dict) -> str:
  """One line a rule."""
  head = ["rule", "claims", "max TV", "finding", *(f"E[tau] {pair}" for pair in _PAIRS),
          "short of best", "ways of drafting", "grounds", "seconds"]
  rows = []
  for spec, certificate in certificates.items():
    claims, found = rules[spec].lossless, certificate.lossless
    finding = ("lossless" if found else "BIASED") if claims else "lossy"
    if math.isnan(certificate.max_tv):
      finding = "NO LAW"
    if found and certificate.how.startswith("simulated"):
      finding = "not rejected"
    two = next((case for case in certificate.cases
                if case.scheme.is_chain and sum(case.scheme.drafted) == 2), None)
    rows.append([
        spec, "lossless" if claims else "lossy", f"{certificate.max_tv:.1e}", finding,
        *(_tokens(two, pair) for pair in _PAIRS), f"{round(certificate.distance, 4) + 0:.4f}",
        str(len(certificate.cases)), certificate.how.partition(",")[0],
        f"{certificate.seconds:.1f}"])
  return text_table(head, rows)


def trees(certificates: dict[str, exact.Certificate]) -> str:
  """E[tau] on AB / P3 / S3 for rules that judge several paths; empty if there is none."""
  labels = list(dict.fromkeys(_TREES.values()))
  rows = []
  for spec, certificate in certificates.items():
    cases = {_TREES[case.scheme]: case for case in certificate.cases if case.scheme in _TREES}
    if cases:
      rows.append([spec, *(" / ".join(_tokens(cases.get(label), pair) for pair in _PAIRS)
                           for label in labels)])
  return text_table(["rule", *labels], rows) if rows else ""


def report(certificates: dict[str, exact.Certificate], rules: dict) -> str:
  """The tables as Markdown."""
  parts = [f"E[tau] of the pairs is for gamma = 2.\n\n{summary(certificates, rules)}"]
  if trees(certificates):
    parts.append(f"E[tau] on {' / '.join(_PAIRS)}, depth 2:\n\n{trees(certificates)}")
  return "\n\n".join(parts + [_LEGEND.strip()]) + "\n"


def _tokens(case, pair: str) -> str:
  return "-" if case is None or case.at(pair) != case.at(pair) else f"{case.at(pair):.4f}"
