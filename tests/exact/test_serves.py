"""All rules under all kinds of siblings: certified lossless or refused, nothing in between."""

import jax.numpy as jnp
import pytest
from jax.tree_util import Partial

from specjax import decode, logits, types, verify
from specjax.exact import certify, drafts, systems
from specjax.types import CHAIN, DETERMINISTIC, INDEPENDENT, PATH_NOISE, PATHS, WITHOUT_REPLACEMENT

# Three nodes each, so that one program of a rule serves them all; `exact.schemes` has larger ones.
_FORK = (-1, -1, 0)
_WAYS = {
    CHAIN: drafts.chain(3),
    INDEPENDENT: drafts.Scheme("fork, independent", _FORK, INDEPENDENT),
    WITHOUT_REPLACEMENT: drafts.Scheme("fork, no repeats", _FORK, WITHOUT_REPLACEMENT),
    PATHS: drafts.paths(3, 1),
    PATH_NOISE: drafts.paths(3, 1, PATH_NOISE),
    DETERMINISTIC: drafts.Scheme("fork, chosen", _FORK, DETERMINISTIC),
}
_SYSTEMS = systems.random(0, 8, 3, 3)
_ALL = set(types.SIBLINGS)
_SERVED = {
    "token": {CHAIN},
    "block": {CHAIN},
    "match": _ALL,
    "kseq": {CHAIN, INDEPENDENT, PATHS, PATH_NOISE},
    "specinfer": _ALL - {WITHOUT_REPLACEMENT},
    "recursive": _ALL,
    "traversal": _ALL,
    "multipath_block": {CHAIN, PATHS, PATH_NOISE},
    "gumbel": _ALL,
    "list_gumbel": {CHAIN, PATH_NOISE},
}


def _drafter(siblings: str, way: drafts.Scheme) -> types.Drafter:
  return types.Drafter(
      propose=Partial(lambda *args: None), nodes=len(way.parents), depth=way.depth, abstains=False,
      siblings=siblings)


def _decoder(rule, siblings: str, way: drafts.Scheme):
  target = types.Target(init=None, forward=None, commit=None, vocab_size=3, max_length=None)
  return decode.speculative(target, _drafter(siblings, way), rule, logits.temperature(1.))


def test_the_matrix_covers_all_rules_and_kinds():
  lossless = {name for name in verify.__all__ if name.islower()
              and name not in ("where", "lenient", "greedy", "typical")}
  assert set(_SERVED) == lossless and set(_WAYS) == _ALL
  assert all(way.kind == kind for kind, way in _WAYS.items())


@pytest.mark.parametrize("kind", types.SIBLINGS)
@pytest.mark.parametrize("name", _SERVED)
def test_every_rule_is_lossless_for_every_kind_or_refuses_it(name, kind):
  rule, way = getattr(verify, name)(), _WAYS[kind]
  assert rule.lossless and rule.keeps_law(kind, way.is_chain) is (kind in _SERVED[name])
  if kind in _SERVED[name]:
    _decoder(rule, kind, way)
    # Of a coupled rule every draft there is, whatever drew it; but the noise of paths is simulated.
    if rule.coupled and kind != PATH_NOISE:
      way = way._replace(siblings=drafts.SHARED_NOISE)
    assert certify(rule, [way], _SYSTEMS).max_tv <= 1e-12
  else:
    with pytest.raises(types.Error, match="chains only" if not rule.trees else repr(kind)):
      _decoder(rule, kind, way)


@pytest.mark.parametrize("name", _SERVED)
@pytest.mark.parametrize("kind", types.SIBLINGS)
def test_a_chain_has_no_siblings(name, kind):
  """kseq serves prompt lookup, whose trees it would refuse."""
  _decoder(getattr(verify, name)(), kind, drafts.chain(3))


@pytest.mark.parametrize("kind", types.SIBLINGS)
@pytest.mark.parametrize("rule", [
    verify.greedy(), verify.typical(), verify.lenient(.5, verify.kseq())])
def test_lossy_rules_take_every_draft_that_they_can_judge(rule, kind):
  _decoder(rule, kind, _WAYS[kind])


@pytest.mark.parametrize("name,kind,way,tv", [
    ("kseq", WITHOUT_REPLACEMENT, drafts.tree((2, 2), WITHOUT_REPLACEMENT), .249),
    ("kseq", DETERMINISTIC, drafts.tree((2, 1), DETERMINISTIC), .250),
    ("specinfer", WITHOUT_REPLACEMENT, drafts.tree((2, 2), WITHOUT_REPLACEMENT), .099),
])
def test_without_the_refusal_the_law_would_be_lost(name, kind, way, tv):
  rule = getattr(verify, name)()
  assert not rule.keeps_law(kind, way.is_chain)
  found = certify(rule, [way], number=30)
  assert found.max_tv == pytest.approx(tv, abs=1e-3), found.max_tv


def test_what_a_rule_serves_is_checked():
  with pytest.raises(types.Error, match="`serves` is a frozenset of 'chain'.*got 'chain'"):
    verify.Rule(Partial(jnp.add), lossless=True, coupled=False, serves="chain", bottom_up=False)


def test_a_rule_made_of_rules_refuses_what_one_of_them_refuses():
  both = verify.where(jnp.bool_(True), verify.kseq(), verify.recursive())
  with pytest.raises(types.Error, match="'without replacement'"):
    _decoder(both, WITHOUT_REPLACEMENT, _WAYS[WITHOUT_REPLACEMENT])
