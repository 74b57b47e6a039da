"""What is shown of certificates."""

from specjax import exact, verify
from specjax.exact import drafts, systems
from specjax.report import certificates
from specjax.types import WITHOUT_REPLACEMENT


def _certificates():
  made = systems.concatenate(*(systems.pair(name, 3, 3) for name in ("AB", "P3", "S3")))
  ways = {"token": [drafts.chain(3), drafts.chain(3)._replace(invalid=(2,))],
          "recursive": [drafts.chain(3), drafts.tree((2, 1), WITHOUT_REPLACEMENT)]}
  rules = {name: getattr(verify, name)() for name in ways}
  return rules, {name: exact.certify(rules[name], ways[name], made) for name in ways}


def test_tables():
  rules, found = _certificates()
  token, recursive = (line for line in certificates.summary(found, rules).splitlines()[2:])
  assert token.split("|")[1:4][0].strip() == "token" and "1.1111" in token and "1.1900" in token
  assert "lossless" in recursive and "1.1111" not in recursive  # no chain of two was asked for
  assert "1.6667 / 1.4875 / 1.0157" in certificates.trees(found)
  assert certificates.trees({"token": found["token"]}) == ""
  assert "max TV" in certificates.report(found, rules)
