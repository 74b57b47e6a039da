"""Under which ways of drafting each rule claims to keep the target's law."""

from specjax.exact import drafts
from specjax.exact.drafts import chain, paths, Scheme, tree
from specjax.verify.rule import Rule

_CHAINS = (
    chain(3),
    chain(1),
    chain(3)._replace(name="chain 3, last not drafted", invalid=(2,)),
    chain(3)._replace(name="chain 3, nothing drafted", invalid=(0,)),
    chain(3)._replace(name="chain 3, stopped when unlikely", stop_below=.3),
    chain(3)._replace(name="chain 3, deterministic", siblings=drafts.DETERMINISTIC),
)
_PATHS = (paths(2, 2), paths(3, 1))
_INDEPENDENT = _PATHS + (paths(2, 2, drafts.JOINED), tree((2, 2), drafts.INDEPENDENT))
_DETERMINISTIC = (tree((2, 1), drafts.DETERMINISTIC),)
_WITHOUT_REPLACEMENT = (
    tree((2, 1), drafts.WITHOUT_REPLACEMENT),
    tree((2, 2), drafts.WITHOUT_REPLACEMENT),
    tree((3,), drafts.WITHOUT_REPLACEMENT),
    paths(2, 2, drafts.MERGED),
    Scheme("uneven tree, without replacement", (-1, 0, -1, 0), drafts.WITHOUT_REPLACEMENT),
    tree((2, 2), drafts.WITHOUT_REPLACEMENT)._replace(
        name="2x2 tree, without replacement, pruned", invalid=(0, 5)),
)
_RESTRICTED = {
    "kseq": _CHAINS + _INDEPENDENT,  # one law for all siblings
    "specinfer": _CHAINS + _INDEPENDENT + _DETERMINISTIC,  # no sibling looks at another
    "multipath_block": _CHAINS + _PATHS,
    "gumbel": (
        chain(3)._replace(name="chain 3, shared noise", siblings=drafts.SHARED_NOISE),
        chain(3)._replace(
            name="chain 3, shared noise, last not drafted", siblings=drafts.SHARED_NOISE,
            invalid=(2,)),
        tree((2, 2), drafts.SHARED_NOISE)),
    "list_gumbel": (
        chain(3)._replace(name="chain 3, noise of each path", siblings=drafts.PATH_NOISE),
        chain(3)._replace(
            name="chain 3, noise of each path, last not drafted", siblings=drafts.PATH_NOISE,
            invalid=(2,)),
        paths(2, 2, drafts.PATH_NOISE),
        paths(3, 1, drafts.PATH_NOISE)),
}


def schemes(rule: Rule) -> tuple[Scheme, ...]:
  """The ways of drafting to certify a rule under; a chain of three comes first.

  A rule made of others (`where`, `lenient`) claims what all of them claim.
  """
  name = rule.formula.func.__module__.rpartition(".")[2]  # one rule, one file
  trees = _INDEPENDENT + _DETERMINISTIC + _WITHOUT_REPLACEMENT if rule.trees else ()
  claimed = _RESTRICTED.get(name, _CHAINS + trees)
  for inner in rule.formula.args:
    if isinstance(inner, Rule):
      claimed = tuple(scheme for scheme in claimed if scheme in schemes(inner))
  return claimed
