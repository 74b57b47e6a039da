"""Proves by enumeration which rules keep the target's law, and counts the tokens that they accept.

    python -m experiments.certify [--rule=block,traversal] [--full] [--json] [--out=DIR]

For every rule, every way of drafting that it claims to serve and some 220 systems (random
prefix-dependent laws, degenerate ones, the pairs AB, P3 and S3 of the literature), the law of the
text is summed over all drafts and coins in float64 and compared with the target's. All rules take
below two minutes on two cores; --full, with four tokens instead of three and twice the systems,
some ten minutes. Exits with 1 if a rule that claims to be lossless is not. Writes certify.md and
certify.json into --out.
"""

import math
import os
import pathlib
import re
import sys
from concurrent import futures

import tqdm
from absl import flags

from specjax import exact
from specjax.exact import drafts
from specjax.launch import app, errors, record, registry, user_code
from specjax.types import Error, PATH_NOISE, WITHOUT_REPLACEMENT

_RULE = flags.DEFINE_string(
    "rule", "all", f"comma-separated, or all: {registry.rules_help()}")
_FULL = flags.DEFINE_bool("full", False, "4 tokens and 400 random systems instead of 3 and 200")

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


def select(text: str) -> list[str]:
  """The rules that --rule asks for, each as `registry.rule` reads it.

  Raises:
    Error: an unknown rule.
  """
  # A comma before a digit belongs to the numbers of one rule.
  asked = registry.RULES if text == "all" else re.split(r",(?![\d.])", text)
  for name in asked:
    if name.partition(":")[0] not in registry.RULES and not user_code.parts(name):
      raise Error(
          f"--rule: there is no rule {name!r}{errors.nearest(name, [*registry.RULES, 'all'])}")
  return ["lenient:0.8" if name == "lenient" else name for name in asked]


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
  rows = [["rule", "claims", "max TV", "finding", *(f"E[tau] {pair}" for pair in _PAIRS),
           "short of best", "ways of drafting", "grounds", "seconds"]]
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
  return _table(rows)


def trees(certificates: dict[str, exact.Certificate]) -> str:
  """E[tau] on AB / P3 / S3 for rules that judge several paths; empty if there is none."""
  labels = list(dict.fromkeys(_TREES.values()))
  rows = []
  for spec, certificate in certificates.items():
    cases = {_TREES[case.scheme]: case for case in certificate.cases if case.scheme in _TREES}
    if cases:
      rows.append([spec, *(" / ".join(_tokens(cases.get(label), pair) for pair in _PAIRS)
                           for label in labels)])
  return _table([["rule", *labels]] + rows) if rows else ""


def report(certificates: dict[str, exact.Certificate], rules: dict) -> str:
  """The tables as Markdown."""
  parts = [f"E[tau] of the pairs is for gamma = 2.\n\n{summary(certificates, rules)}"]
  if trees(certificates):
    parts.append(f"E[tau] on {' / '.join(_PAIRS)}, depth 2:\n\n{trees(certificates)}")
  return "\n\n".join(parts + [_LEGEND.strip()]) + "\n"


def _tokens(case, pair: str) -> str:
  return "-" if case is None or case.at(pair) != case.at(pair) else f"{case.at(pair):.4f}"


def _table(rows: list[list[str]]) -> str:
  widths = [max(map(len, column)) for column in zip(*rows)]
  rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
  pad = lambda row: " | ".join(cell.ljust(width) for cell, width in zip(row, widths))
  return "\n".join(f"| {pad(row)} |" for row in rows)


def main(_):
  specs = select(_RULE.value)
  rules = {spec: registry.rule(spec) for spec in specs}
  size = dict(vocab=4, number=400) if _FULL.value else {}
  # Most of the time goes into compiling, which XLA does outside of Python's lock.
  with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    jobs = {spec: pool.submit(exact.certify, rule, seed=app.SEED.value, **size)
            for spec, rule in rules.items()}
    done = futures.as_completed(jobs.values())
    for _ in tqdm.tqdm(done, total=len(jobs), unit="rule", file=sys.stderr, disable=None):
      pass
  certificates = {spec: job.result() for spec, job in jobs.items()}
  text = report(certificates, rules)
  print(text)
  if app.OUT.value is not None:
    (pathlib.Path(app.OUT.value) / "certify.md").write_text(text, encoding="utf-8")
  records = [as_data(spec, rules[spec], certificates[spec]) for spec in rules]
  passed = all(each["passed"] for each in records)
  app.emit("certify", dict(passed=passed, rules=records, manifest=record.manifest(app.SEED.value)))
  return 0 if passed else 1


if __name__ == "__main__":
  app.run(main)
