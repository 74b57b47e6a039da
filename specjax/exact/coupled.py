"""Coupled rules flip no coins, so there is nothing to sum: what can be said of them instead.

SHARED_NOISE  (`gumbel`) is certified noise by noise. The text must equal, bit for bit, that of
              plain decoding with the same keys, whatever was drafted; it then has the law of plain
              decoding. Each noise field is tried with every possible draft. The part of texts that
              differ bounds the total variation, and is what is reported.
PATH_NOISE    (`list_gumbel`) gives texts that depend on the draft. Rounds are simulated with drafts
              that share the noise, completed by exact samples of p, and what is reported is a lower
              confidence bound of the total variation: 0 unless the frequencies are too far away.

E[tau] is exact in both cases, from `race`; it is NaN for trees with shared noise, whose drawing is
the drafter's own affair.
"""

import functools
import math

import jax
import jax.numpy as jnp

from specjax import keys as keys_lib
from specjax.exact import drafts as drafts_lib, prefixes, race, rounds
from specjax.logits import law
from specjax.types import Array, Draft, Error, PATH_NOISE, ROOT
from specjax.verify.rule import Rule

FALSE_ALARM = 1e-9  # probability that the bound of a lossless rule is positive in a given system

_FIELDS = 8  # noise fields for each system, each with all V ** N drafts
_ROUNDS = 4096  # simulated rounds for each system


def how(schemes) -> str:
  """What a certificate under these schemes rests on, in a few words."""
  if all(scheme.siblings == drafts_lib.SHARED_NOISE for scheme in schemes):
    return f"text equals plain decoding's, {_FIELDS} noise fields a system, every draft"
  return f"simulated, {_ROUNDS} rounds a system, false alarm {FALSE_ALARM:g}"


def outcome(rule: Rule, scheme: drafts_lib.Scheme, log_p: Array, log_q: Array, keys: Array):
  """The reported total variation and E[tau], both float[S], of tables float[S, M, V] and key[S].

  Raises:
    Error: a scheme whose drafts do not share noise with the target.
  """
  if scheme.siblings not in (drafts_lib.SHARED_NOISE, PATH_NOISE):
    raise Error(
        "a coupled rule is certified under drafts that share its noise "
        f"({drafts_lib.SHARED_NOISE}, {PATH_NOISE}), not under {scheme.name!r}.")
  tau = _accepted(scheme, log_p, log_q)
  if scheme.siblings == drafts_lib.SHARED_NOISE:
    return _differing(rule, scheme, log_p, log_q, keys), tau
  tv, allowed = _simulated(rule, scheme, log_p, log_q, keys)
  return jnp.maximum(tv - allowed, 0), tau


@functools.partial(jax.jit, static_argnums=0)
def _accepted(scheme: drafts_lib.Scheme, log_p: Array, log_q: Array) -> Array:
  if not scheme.is_chain and scheme.siblings == drafts_lib.SHARED_NOISE:
    return jnp.full(log_p.shape[0], jnp.nan, log_p.dtype)
  drafted = sum(scheme.drafted) if scheme.is_chain else scheme.depth
  rows = prefixes.count(log_p.shape[-1], drafted)
  accepted = functools.partial(race.accepted, paths=scheme.parents.count(ROOT))
  return jax.vmap(accepted)(log_p[:, :rows], log_q[:, :rows])


@functools.partial(jax.jit, static_argnums=1)
def _differing(rule: Rule, scheme: drafts_lib.Scheme, log_p: Array, log_q: Array, keys: Array):
  """float[S]: the part of all (noise field, draft) whose text is not that of plain decoding."""
  def field(key, p, drafts):
    noise = jax.random.split(key, scheme.depth + 1)
    plain, text = [], jnp.int32(0)
    for step in range(scheme.depth + 1):
      plain.append(law.sample(noise[step], p[text]))
      text = jnp.minimum(prefixes.child(text, plain[-1], p.shape[1]), p.shape[0] - 1)
    plain = jnp.stack(plain)

    def differs(draft, texts):
      verdict = rule.verify(noise, draft, p[texts], scheme.depth)
      emitted = jnp.arange(scheme.depth + 1, dtype=jnp.int32) < verdict.count
      return (emitted & (verdict.tokens != plain)).any()

    return jax.vmap(differs)(drafts.draft, drafts.prefixes).mean(dtype=p.dtype)

  def one(system):
    p, q, key = system
    drafts = drafts_lib.enumerate_drafts(scheme, q)
    return jax.vmap(lambda key: field(key, p, drafts))(jax.random.split(key, _FIELDS)).mean()

  return jax.lax.map(one, (log_p, log_q, keys))


@functools.partial(jax.jit, static_argnums=1)
def _simulated(rule: Rule, scheme: drafts_lib.Scheme, log_p: Array, log_q: Array, keys: Array):
  """float[S] total variation of the frequencies, and what chance alone may make of it.

  Each round moves the frequencies by 1 / n in total variation, so by McDiarmid's inequality that
  exceeds its mean, at most sum sqrt(p (1 - p) / n) / 2, by sqrt(log(1 / f) / 2n) with probability f
  at most.
  """
  def one(system):
    p, q, key = system
    ends = jax.vmap(lambda key: _coupled_round(rule, scheme, p, q, key))(
        jax.random.split(key, _ROUNDS))
    committed = jnp.zeros_like(p).at[ends].add(1 / _ROUNDS)
    target = rounds.joint(p)[prefixes.level(p.shape[1], scheme.depth + 1)]
    mean = jnp.sqrt(target * (1 - target) / _ROUNDS).sum() / 2
    chance = math.sqrt(math.log(1 / FALSE_ALARM) / (2 * _ROUNDS))
    return rounds.total_variation(committed, p), mean + chance

  rows = prefixes.count(log_p.shape[-1], scheme.depth)
  return jax.lax.map(one, (log_p[:, :rows], log_q[:, :rows], keys))


def _coupled_round(rule: Rule, scheme: drafts_lib.Scheme, log_p: Array, log_q: Array, key: Array):
  """One simulated round: the accepted text and the extra token, both int32[]."""
  vocab, parents = log_p.shape[1], scheme.parents
  noise = jax.random.split(key, scheme.depth + 1)
  texts, tokens, path = [jnp.int32(0)], [], []
  for node, (parent, depth) in enumerate(zip(parents, scheme.depths)):
    path.append(parents[:node].count(ROOT) if parent == ROOT else path[parent])
    own = keys_lib.path(noise[depth - 1], path[node])
    tokens.append(law.sample(own, log_q[texts[parent + 1]]))
    texts.append(prefixes.child(texts[parent + 1], tokens[node], vocab))
  texts, parents = jnp.stack(texts), jnp.asarray(parents, jnp.int32)
  draft = Draft(jnp.stack(tokens), parents, log_q[texts[parents + 1]], jnp.asarray(scheme.drafted))
  verdict = rule.verify(noise, draft, log_p[texts], scheme.depth)
  text = jnp.int32(0)
  for step in range(scheme.depth):
    longer = prefixes.child(text, verdict.tokens[step], vocab)
    text = jnp.where(step < verdict.count - 1, longer, text)
  return text, verdict.tokens[verdict.count - 1]
