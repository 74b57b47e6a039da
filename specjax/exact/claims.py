"""Under which ways of drafting each rule claims to keep the target's law."""

from specjax.exact.drafts import (
    DETERMINISTIC, INDEPENDENT, MERGED, WITHOUT_REPLACEMENT, Scheme, chain, paths, tree)
from specjax.verify.rule import Rule

_CHAINS = (
    chain(3),
    chain(1),
    chain(3)._replace(name="chain 3, last not drafted", invalid=(2,)),
    chain(3)._replace(name="chain 3, nothing drafted", invalid=(0,)),
    chain(3)._replace(name="chain 3, deterministic", siblings=DETERMINISTIC),
)
_INDEPENDENT_TREES = (paths(2, 2), tree((3,), INDEPENDENT), tree((2, 2), INDEPENDENT))
_OTHER_TREES = (
    tree((2, 1), WITHOUT_REPLACEMENT),
    tree((2, 2), WITHOUT_REPLACEMENT),
    tree((3,), WITHOUT_REPLACEMENT),
    paths(2, 2, MERGED),
    tree((2, 1), DETERMINISTIC),
    Scheme("uneven tree, without replacement", (-1, 0, -1, 0), WITHOUT_REPLACEMENT),
    tree((2, 2), WITHOUT_REPLACEMENT)._replace(
        name="2x2 tree, without replacement, pruned", invalid=(0, 5)),
)


def schemes(rule: Rule) -> tuple[Scheme, ...]:
  """The ways of drafting to certify a rule under; the chain of three comes first."""
  return _CHAINS + (_INDEPENDENT_TREES + _OTHER_TREES if rule.trees else ())
