"""Coupled rules: the text's law, its independence of the draft, the closed forms, the mutants.

Laws of text are tested by Pearson's chi-square over the 27 texts of three tokens, with n = 50,000
rounds and a fixed seed; the threshold has a false-alarm rate of 1e-6. Acceptances are held to five
standard errors (6e-7).
"""

import functools

import chex
import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from specjax import keys, verify
from specjax.exact import coupling, systems
from specjax.logits import law
from specjax.trees import topology
from specjax.types import Draft, ROOT
from tests.verify import rounds, toys

N, DEPTH, VOCAB = 50_000, 2, 3
THRESHOLD = stats.chi2.isf(1e-6, VOCAB**3 - 1)
SYSTEM = rounds.System(*(  # laws that depend on the whole text, no text rarer than 2e-3
    [np.random.default_rng(seed).dirichlet(np.full(VOCAB, 8), VOCAB**d) for d in range(DEPTH + 1)]
    for seed in (0, 1)))


def position_keys(seed, number, length=DEPTH + 1):
  rows = jnp.arange(number, dtype=jnp.int32)
  return keys.positions(jax.random.key(seed), rows, jnp.full(number, 7, jnp.int32), length)


def flat(table):
  """float32[texts, V]: log laws of all texts of a table, those of d tokens from (V^d - 1) / 2."""
  return jnp.asarray(np.concatenate(toys.log(np.concatenate(table)[None])), jnp.float32)


def after(text, token):
  return text * VOCAB + 1 + token


def shared(field, depth, path):
  """gumbel: drafter and target read the position's key."""
  return field[depth]


def of_path(field, depth, path):
  """list_gumbel: each path has noise of its own."""
  return keys.path(field[depth], path)


def shape(parents):
  """Depth and path of every node."""
  depth, path = [], []
  for parent in parents:
    depth.append(0 if parent < 0 else depth[parent] + 1)
    path.append(parents[:len(path)].count(-1) if parent < 0 else path[parent])
  return depth, path


def draft_of(log_q, field, parents, key_of):
  """Draws each node with the key that the rule expects; texts are rows of the flat table."""
  tokens, texts = [], []
  for parent, depth, path in zip(parents, *shape(parents)):
    text = texts[parent] if parent >= 0 else jnp.int32(0)
    tokens.append(law.sample(key_of(field, depth, path), log_q[text]))
    texts.append(after(text, tokens[-1]))
  return jnp.stack(tokens), jnp.stack([jnp.int32(0), *texts])


def play(rule, field, log_p, log_q, parents, key_of, draft_field=None):
  """One round, then plain sampling: (the first three tokens, how many were accepted)."""
  tokens, texts = draft_of(log_q, field if draft_field is None else draft_field, parents, key_of)
  draft = Draft(tokens, jnp.asarray(parents, jnp.int32), log_q[texts[jnp.asarray(parents) + 1]],
                jnp.ones(len(parents), bool))
  verdict = rule.verify(field, draft, log_p[texts], depth=DEPTH)
  text, out = jnp.int32(0), []
  for position in range(DEPTH + 1):
    plain = law.sample(field[position], log_p[text])
    out.append(jnp.where(position < verdict.count, verdict.tokens[position], plain))
    text = after(text, out[-1])
  return jnp.stack(out), verdict.count - 1


@functools.partial(jax.jit, static_argnames=("rule", "parents", "key_of", "shared_draft"))
def _many(rule, fields, log_p, log_q, parents, key_of, draft_fields, shared_draft):
  one = lambda field, draft_field: play(
      rule, field, log_p, log_q, parents, key_of, None if shared_draft else draft_field)
  return jax.vmap(one)(fields, draft_fields)


def many(rule, fields, system, parents, key_of=shared, draft_fields=None):
  return [np.asarray(x) for x in _many(
      rule, fields, flat(system.p), flat(system.q), parents, key_of,
      fields if draft_fields is None else draft_fields, draft_fields is None)]


def chi_square(texts, expected):
  counts = np.bincount(texts @ VOCAB ** np.arange(DEPTH, -1, -1), minlength=expected.size)
  return ((counts - len(texts) * expected) ** 2 / (len(texts) * expected)).sum()


@pytest.mark.parametrize("rule, parents, key_of", [
    (verify.gumbel(), topology.chain(2), shared),
    (verify.gumbel(), topology.branching((2, 1)), of_path),  # any draft will do
    (verify.list_gumbel(), topology.paths(2, 2), of_path),
    (verify.list_gumbel(), topology.paths(3, 2), of_path)],
    ids=["gumbel, chain", "gumbel, tree", "list of 2", "list of 3"])
def test_the_text_keeps_the_law_of_the_target(rule, parents, key_of):
  texts, accepted = many(rule, position_keys(0, N), SYSTEM, parents, key_of)
  assert chi_square(texts, rounds.target_law(SYSTEM, DEPTH)) < THRESHOLD
  assert 0 < accepted.mean() < DEPTH


@pytest.mark.parametrize("mistake", ["by round", "by draft index, twice"])
def test_noise_that_positions_share_is_caught(mistake):
  """One key for all positions of a round, or one for two neighbours."""
  field = position_keys(1, N)
  source = {"by round": [0, 0, 0], "by draft index, twice": [0, 1, 1]}[mistake]
  texts, _ = many(verify.gumbel(), field[:, jnp.array(source)], SYSTEM, topology.chain(2))
  assert chi_square(texts, rounds.target_law(SYSTEM, DEPTH)) > 10 * THRESHOLD


def test_noise_of_another_slot_only_costs_acceptance():
  """The text stays right, but the drafter agrees no more often than chance, sum p q."""
  p3 = rounds.pair("P3", DEPTH)
  other = jnp.roll(position_keys(2, N), 1, axis=0)
  _, accepted = many(
      verify.gumbel(), position_keys(2, N), p3, topology.chain(2), draft_fields=other)
  near((accepted > 0).mean(), np.dot(*toys.P3))


def near(got, expected):
  assert abs(got - expected) < 5 * np.sqrt(.25 / N)


def closed(function, pair, *rest):
  with jax.enable_x64(True):
    return float(function(*(jnp.asarray(law_, jnp.float64) for law_ in pair), *rest))


@pytest.mark.parametrize("name", ["P3", "R3", "S3"])
def test_gumbel_accepts_by_its_closed_form(name):
  _, accepted = many(
      verify.gumbel(), position_keys(3, N), rounds.pair(name, DEPTH), topology.chain(2))
  alpha = closed(coupling.gumbel_acceptance, systems.PAIRS[name])
  near((accepted > 0).mean(), alpha)
  near((accepted > 1).mean(), alpha**2)


@pytest.mark.parametrize("name, once", [("P3", .7931), ("R3", .7741)])
def test_list_gumbel_accepts_as_published_and_above_its_bound(name, once):
  """The published values are themselves estimates, to .002."""
  _, accepted = many(verify.list_gumbel(), position_keys(4, N), rounds.pair(name, DEPTH),
                     topology.paths(2, 2), of_path)
  assert abs((accepted > 0).mean() - once) < .002 + 5 * np.sqrt(.25 / N)
  assert (accepted > 0).mean() > closed(coupling.list_gumbel_bound, systems.PAIRS[name], 2)
  if name == "P3":
    assert abs(accepted.mean() - 1.361) < .005 + 5 * np.sqrt(1 / N)


def test_paths_that_share_their_noise_are_worth_one():
  """Mutant: with the position's key for all paths the drafts are equal."""
  _, accepted = many(verify.gumbel(), position_keys(5, N), rounds.pair("P3", DEPTH),
                     topology.paths(2, 2), shared)
  near((accepted > 0).mean(), 2 / 3)


@jax.jit
def plain(fields, log_p):
  """Decoding without a draft."""
  def one(field):
    text, out = jnp.int32(0), []
    for key in field:
      out.append(law.sample(key, log_p[text]))
      text = after(text, out[-1])
    return jnp.stack(out)
  return jax.vmap(one)(fields)


def test_gumbel_text_depends_on_the_seed_and_the_target_alone():
  """Bit for bit the text of plain decoding, for every drafter and tree; the list's is not."""
  fields = position_keys(0, N)
  expected = np.asarray(plain(fields, flat(SYSTEM.p)))
  for q, parents, key_of in (
      (SYSTEM.q, topology.chain(2), shared),
      (rounds.pair("P3", DEPTH).q, topology.chain(2), shared),
      (SYSTEM.q, topology.branching((2, 1)), of_path),
      (rounds.pair("R3", DEPTH).q, topology.branching((2, 1)), of_path)):
    texts, accepted = many(verify.gumbel(), fields, rounds.System(SYSTEM.p, q), parents, key_of)
    np.testing.assert_array_equal(texts, expected)
    assert set(accepted) == {0, 1, 2}
  listed = many(verify.list_gumbel(), fields, SYSTEM, topology.paths(2, 2), of_path)[0]
  assert (listed != expected).any()


def test_the_perfect_drafter_is_always_accepted():
  same = rounds.System(SYSTEM.p, SYSTEM.p)
  for rule, parents, key_of in ((verify.gumbel(), topology.chain(2), shared),
                                (verify.list_gumbel(), topology.paths(2, 2), of_path)):
    assert (many(rule, position_keys(7, N), same, parents, key_of)[1] == 2).all()


def judged(rule, case, keys_, depth=None):
  return jax.jit(rule.verify, static_argnums=3)(keys_, case.draft, jnp.asarray(case.log_p), depth)


def test_equal_prefixes_are_followed_together():
  """Two chains that begin alike: the walk goes on down whichever of them the target agrees with."""
  p = np.eye(3)[[0, 2, 1, 2, 1]]
  case = toys.case([0, 1, 0, 2], p, parents=[-1, 0, -1, 2])
  for rule in (verify.gumbel(), verify.list_gumbel()):
    verdict = judged(rule, case, position_keys(8, 1)[0], depth=2)
    assert verdict.count == 3 and verdict.path.tolist() == [2, 3]


def test_what_was_not_drafted_is_not_followed():
  case = toys.case([0, 0], np.eye(3)[[0, 0, 0]], valid=[True, False])
  for rule in (verify.gumbel(), verify.list_gumbel()):
    verdict = judged(rule, case, position_keys(8, 1)[0])
    assert verdict.tokens.tolist() == [0, 0, -1] and verdict.path.tolist() == [0, -1]
    empty = toys.case([], np.eye(3)[:1])
    assert judged(rule, empty, position_keys(8, 1)[0, :1]).tokens.tolist() == [0]


def test_without_a_further_key_the_walk_stops():
  case = toys.case([0, 0], np.eye(3)[[0, 0, 0]])
  verdict = judged(verify.gumbel(), case, position_keys(8, 1)[0, :2])
  assert verdict.tokens.tolist() == [0, 0, -1]


def test_a_single_key_is_refused():
  case = toys.case([0, 0], np.eye(3)[[0, 0, 0]])
  for rule in (verify.gumbel(), verify.list_gumbel()):
    with pytest.raises(ValueError, match="keys of positions"):
      rule.verify(jax.random.key(0), case.draft, case.log_p)


def test_draft_noise_reused_in_the_residual_is_a_bias():
  """Why token's extra token has a key of its own: noise that chose the draft is no longer fresh."""
  p, q = (jnp.array(x, jnp.float32) for x in ((.1, .5, .4), (.7, .2, .1)))

  def first(key):
    noise_key, coin_key = jax.random.split(key)
    token = law.sample(noise_key, jnp.log(q))
    accepted = jax.random.uniform(coin_key) * q[token] < p[token]
    return jnp.where(
        accepted, token, law.sample(noise_key, law.log_residual(jnp.log(p), jnp.log(q))))

  tokens = jax.jit(jax.vmap(first))(jax.random.split(jax.random.key(9), N))
  share = np.bincount(np.asarray(tokens), minlength=3) / N
  np.testing.assert_allclose(share, [.0998, .4733, .4269], rtol=0, atol=5 * np.sqrt(.25 / N))
  assert N * ((share - np.asarray(p)) ** 2 / np.asarray(p)).sum() > stats.chi2.isf(1e-6, 2)


def drawn(jaxpr):
  """How many entries of noise each drawing operation of a program makes."""
  for equation in jaxpr.eqns:
    if equation.primitive.name == "log1p":
      yield equation.outvars[0].aval.size
    for inner in jax.extend.core.jaxprs_in_params(equation.params):
      yield from drawn(inner)


@pytest.mark.parametrize("rule", [verify.gumbel(), verify.list_gumbel()])
def test_noise_is_made_one_row_at_a_time(rule):
  nodes, vocab = 20, 1000
  case = toys.case(np.zeros(nodes, int), np.full(vocab, 1 / vocab))
  program = jax.make_jaxpr(rule.verify)(position_keys(0, 1, nodes + 1)[0], case.draft, case.log_p)
  assert list(drawn(program.jaxpr)) == [vocab]


@pytest.mark.parametrize("rule", [verify.gumbel(), verify.list_gumbel()])
def test_a_batch_makes_the_noise_of_rows_that_go_on(rule):
  """The verdicts of 19 rows, alone, as a batch and as a batch of batches; noise for 8 at a time."""
  size, gamma, vocab = 19, 3, 5
  scores = jax.random.normal(jax.random.key(0), (size, gamma + 1, vocab))
  log_p = jax.nn.log_softmax(scores)
  keys = position_keys(1, size, gamma + 1)
  tokens = jax.vmap(jax.vmap(law.sample))(keys, log_p)[:, :gamma]
  tokens = tokens.at[::2, 1].set(0)  # every other draft is likely to end at its second token
  parents = jnp.broadcast_to(jnp.arange(gamma) + ROOT, tokens.shape)
  draft = Draft(tokens, parents, None, jnp.ones(tokens.shape, bool))
  batch = jax.vmap(rule.verify)
  together = jax.jit(batch)(keys, draft, log_p)
  assert len(set(np.asarray(together.count).tolist())) > 1
  alone = jax.lax.map(lambda row: rule.verify(*row), (keys, draft, log_p))
  chex.assert_trees_all_equal(together, alone)
  twice = jax.tree.map(lambda x: jnp.stack([x, x[::-1]]), (keys, draft, log_p))
  nested = jax.vmap(batch)(*twice)
  chex.assert_trees_all_equal(jax.tree.map(lambda x: x[1, ::-1], nested), together)
  for rows, at_once in (size, 8), (1, 1):
    program = jax.make_jaxpr(batch)(*jax.tree.map(lambda x: x[:rows], (keys, draft, log_p)))
    assert max(drawn(program.jaxpr)) == at_once * vocab
