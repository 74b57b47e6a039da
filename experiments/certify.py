"""Proves by enumeration which rules keep the target's law, and counts the tokens that they accept.

    python -m experiments.certify [--rule=block,traversal] [--full] [--json] [--out=DIR]

For every rule, every way of drafting that it claims to serve and some 220 systems (random
prefix-dependent laws, degenerate ones, the pairs AB, P3 and S3 of the literature), the law of the
text is summed over all drafts and coins in float64 and compared with the target's. All rules take
below two minutes on two cores; --full, with four tokens instead of three and twice the systems,
some ten minutes. Exits with 1 if a rule that claims to be lossless is not. Writes certify.md and
certify.json into --out.
"""

import os
import pathlib
import re
import sys
from concurrent import futures

import tqdm
from absl import flags

from specjax import exact
from specjax.launch import app, errors, record, registry, user_code
from specjax.report import certificates as certificates_lib
from specjax.types import Error

_RULE = flags.DEFINE_string(
    "rule", "all", f"comma-separated, or all: {registry.rules_help()}")
_FULL = flags.DEFINE_bool("full", False, "4 tokens and 400 random systems instead of 3 and 200")


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
  text = certificates_lib.report(certificates, rules)
  print(text)
  if app.OUT.value is not None:
    (pathlib.Path(app.OUT.value) / "certify.md").write_text(text, encoding="utf-8")
  records = [certificates_lib.as_data(spec, rules[spec], certificates[spec]) for spec in rules]
  passed = all(each["passed"] for each in records)
  app.emit("certify", dict(passed=passed, rules=records, manifest=record.manifest(app.SEED.value)))
  return 0 if passed else 1


if __name__ == "__main__":
  app.run(main)
