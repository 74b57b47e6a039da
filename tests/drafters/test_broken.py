"""Drafters that break one promise each: the protocol's tests catch them."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from jax.tree_util import Partial

from tests.drafters import cases, test_protocol


def with_draft(name: str, change):
  """The case whose drafter hands out a changed draft."""
  case = cases.ALL[name]

  def propose(keys, params, state, context):
    proposal = case.drafter.propose(keys, params, state, context)
    return proposal._replace(draft=change(proposal.draft))

  return case._replace(drafter=dataclasses.replace(case.drafter, propose=Partial(propose)))


def own_randomness():
  case = cases.ALL["table"]

  def propose(keys, params, state, context):
    mine = jax.random.split(jax.random.key(0), keys.shape)
    return case.drafter.propose(mine, params, state, context)

  return case._replace(drafter=dataclasses.replace(case.drafter, propose=Partial(propose)))


def forgetting_where_nothing_was_kept():
  case = cases.ALL["second_model"]

  def observe(params, state, verdict, features, context):
    return jax.tree.map(jnp.zeros_like, state)

  return case._replace(drafter=dataclasses.replace(case.drafter, observe=Partial(observe)))


def keeping_the_first_chunk_only():
  case = cases.ALL["second_model"]

  def read(params, state, tokens, features, start, count):
    new = case.drafter.read(params, state, tokens, features, start, count)
    return jax.tree.map(lambda new, old: jnp.where(start[0] == 0, new, old), new, state)

  return case._replace(drafter=dataclasses.replace(case.drafter, read=Partial(read)))


@pytest.mark.parametrize("broken, test", [
    (own_randomness, test_protocol.test_all_randomness_is_in_the_keys),
    (lambda: with_draft("table", lambda draft: draft._replace(log_q=2 * draft.log_q)),
     test_protocol.test_every_token_was_drawn_from_a_law_that_has_it),
    (lambda: with_draft("table", lambda draft: draft._replace(parents=draft.parents[:, ::-1])),
     test_protocol.test_parents_come_before_children_and_no_path_is_too_long),
    (lambda: with_draft("second_model", lambda draft: jax.tree.map(
        lambda field: jnp.roll(field, 1, axis=0), draft)),
     test_protocol.test_rows_of_a_batch_do_not_look_at_each_other),
    (forgetting_where_nothing_was_kept,
     test_protocol.test_a_round_that_kept_nothing_changes_nothing),
    (keeping_the_first_chunk_only, test_protocol.test_a_prompt_may_come_in_chunks_of_any_width),
], ids=["randomness of its own", "no law", "children first", "rows mixed",
        "a finished row forgotten", "half of the prompt"])
def test_a_broken_drafter_is_caught(monkeypatch, broken, test):
  monkeypatch.setitem(cases.ALL, "broken", broken())
  test_protocol.drafted.cache_clear()
  with pytest.raises(AssertionError):
    test("broken")
  test_protocol.drafted.cache_clear()
