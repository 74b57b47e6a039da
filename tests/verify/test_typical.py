"""Typical acceptance: the threshold, the longest path, and the greedy extra token."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specjax import verify
from specjax.exact import certify, drafts, systems
from tests.verify import toys


def emitted(rule, p, q):
  """The law of the first token when one token is drafted from q; laws are context-free."""
  law = 0
  for token in range(len(p)):
    one = toys.laws_of(rule, [toys.case([token], p, q)])[0]
    law = law + q[token] * (one[0] + one[1].sum() * np.eye(len(p))[token])
  return law


def test_the_examples_worked_out_by_hand():
  # exp(-H) is .337 and the threshold .09, below every token: the text is the draft's.
  np.testing.assert_allclose(emitted(verify.typical(), *toys.P3), toys.P3[1], rtol=0, atol=1e-15)
  # Only token 0 passes .09, and the argmax stands in for the others: TV .1.
  unsure = (.9, .06, .04), (.5, .3, .2)
  np.testing.assert_allclose(emitted(verify.typical(), *unsure), (1, 0, 0), rtol=0, atol=1e-15)


def test_the_entropy_sets_the_threshold_where_the_target_is_unsure():
  uniform = np.full(8, 1 / 8)  # exp(-H) = 1 / 8
  passes = lambda *numbers: toys.laws_of(
      verify.typical(*numbers), [toys.case([3], uniform, uniform)])[0, 1].sum()
  assert passes(1, .999) == 1
  assert passes(1, 1.001) == 0
  certain = toys.case([0], (1., 0), (1., 0))  # the threshold itself does not pass
  assert toys.laws_of(verify.typical(1, 1), [certain])[0, 1].sum() == 0
  holes = np.array([.5, .5, 0, 0])  # excluded tokens add nothing to the entropy
  assert toys.laws_of(
      verify.typical(epsilon=1, delta=.999), [toys.case([1], holes, holes)])[0, 1].sum() == 1
  assert toys.laws_of(
      verify.typical(epsilon=0, delta=0), [toys.case([2], holes, holes)])[0, 1].sum() == 0


def longest(case, threshold):
  """The last node of the longest passing path, the first in index order among equals."""
  length, best = {-1: 0}, -1
  for node, parent in enumerate(case.parents):
    p = case.p[parent + 1]
    entropy = -sum(x * np.log(x) for x in p if x > 0)
    if parent in length and case.valid[node] and (
        p[case.tokens[node]] > min(threshold, .3 * np.exp(-entropy))):
      length[node] = length[parent] + 1
  paths = {}  # from the root, so that equal lengths compare by their first branches
  for node in length:
    path = []
    while node != -1:
      path.insert(0, node)
      node = case.parents[node]
    paths[tuple(path)] = len(path)
  top = max(paths.values())
  best = min(path for path in paths if paths[path] == top)
  return best[-1] if best else -1


@pytest.mark.parametrize("kind", ("chain", "one law", "point masses"))
def test_the_longest_path_that_passes_is_accepted(kind):
  cases = toys.random_cases(0, 80, 7, 3, kind)
  got = toys.laws_of(verify.typical(epsilon=.2), cases)
  lengths = set()
  for case, law in zip(cases, got):
    stop = longest(case, .2) + 1
    expected = np.zeros_like(law)
    expected[stop, np.argmax(case.p[stop])] = 1
    np.testing.assert_array_equal(law, expected)
    lengths.add(stop)
  assert len(lengths) > 3


def test_every_round_emits_the_argmax_when_nothing_was_drafted():
  case = toys.case([-1], [.2, .5, .3], [.2, .5, .3], valid=[False])
  np.testing.assert_array_equal(toys.laws_of(verify.typical(), [case])[0, 0], [0, 1, 0])


def test_it_is_lossy_and_says_so():
  rule = verify.typical()
  assert not rule.lossless and rule.trees and not rule.coupled
  made = certify(rule, [drafts.chain(1)], systems.pair("P3", 1))
  # Two tokens: the first is the draft's, TV .3, and the bonus token is the argmax.
  assert made.max_tv > .3


def test_a_sweep_over_the_numbers_compiles_once():
  drafts_, log_p = toys.stack(toys.random_cases(1, 4, 5, 3, "chain"))
  run = jax.jit(lambda rule, draft, log_p: jax.vmap(rule.decide)(draft, log_p).accept)
  for epsilon in (.01, .09, 1):
    run(verify.typical(epsilon=epsilon), drafts_, log_p)
  assert run._cache_size() == 1


def test_a_traced_number_and_one_for_each_row():
  case = toys.case([0], (.3, .4, .3), (.3, .4, .3))
  accept = lambda epsilon: verify.typical(epsilon, 1.).decide(case.draft, case.log_p).accept[0]
  got = jax.jit(jax.vmap(accept))(jnp.array([.2, .31]))
  np.testing.assert_array_equal(got, [1, 0])


@pytest.mark.parametrize("numbers", ({"epsilon": -.1}, {"epsilon": 1.5}, {"delta": float("nan")}))
def test_numbers_outside_of_their_range_are_refused(numbers):
  with pytest.raises(ValueError, match=next(iter(numbers))):
    verify.typical(**numbers)
