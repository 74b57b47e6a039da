"""The ways of drafting that a rule is certified under: what `Rule.serves` promises, in small."""

from specjax.exact import drafts
from specjax.exact.drafts import chain, paths, Scheme, tree
from specjax.types import DETERMINISTIC, INDEPENDENT, PATH_NOISE, WITHOUT_REPLACEMENT
from specjax.verify.rule import Rule

_DRAWN = (
    chain(3),
    chain(1),
    chain(3)._replace(name="chain 3, last not drafted", invalid=(2,)),
    chain(3)._replace(name="chain 3, nothing drafted", invalid=(0,)),
    chain(3)._replace(name="chain 3, stopped when unlikely", stop_below=.3),
    chain(3)._replace(name="chain 3, deterministic", siblings=DETERMINISTIC),
    paths(2, 2),
    paths(3, 1),
    paths(2, 2, drafts.JOINED),
    tree((2, 2), INDEPENDENT),
    tree((2, 1), DETERMINISTIC),
    tree((2, 1), WITHOUT_REPLACEMENT),
    tree((2, 2), WITHOUT_REPLACEMENT),
    tree((3,), WITHOUT_REPLACEMENT),
    paths(2, 2, drafts.MERGED),
    Scheme("uneven tree, without replacement", (-1, 0, -1, 0), WITHOUT_REPLACEMENT),
    tree((2, 2), WITHOUT_REPLACEMENT)._replace(
        name="2x2 tree, without replacement, pruned", invalid=(0, 5)),
)
_SHARED_NOISE = (
    chain(3)._replace(name="chain 3, shared noise", siblings=drafts.SHARED_NOISE),
    chain(3)._replace(
        name="chain 3, shared noise, last not drafted", siblings=drafts.SHARED_NOISE,
        invalid=(2,)),
    tree((2, 2), drafts.SHARED_NOISE),
)
_PATH_NOISE = (
    chain(3)._replace(name="chain 3, noise of each path", siblings=PATH_NOISE),
    chain(3)._replace(
        name="chain 3, noise of each path, last not drafted", siblings=PATH_NOISE, invalid=(2,)),
    paths(2, 2, PATH_NOISE),
    paths(3, 1, PATH_NOISE),
)


def served(rule: Rule) -> tuple[Scheme, ...]:
  """The ways of drafting to certify a rule under; a chain of three comes first."""
  return tuple(scheme for scheme in _candidates(rule)
               if rule.keeps_law(scheme.kind, scheme.is_chain))


def _candidates(rule: Rule) -> tuple[Scheme, ...]:
  if not rule.coupled:
    return _DRAWN  # without the noise of the position, paths with noise of their own are just paths
  # A rule that serves siblings with whatever noise gives the text of plain decoding: each noise
  # field is tried with every draft there is. One that serves paths alone needs theirs.
  reads_paths = PATH_NOISE in rule.serves and INDEPENDENT not in rule.serves
  return _PATH_NOISE if reads_paths else _SHARED_NOISE
