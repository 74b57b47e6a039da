"""The two operations over whole vocabularies: transforms of logits, and verification."""

import functools
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from specjax import keys, logits
from specjax.launch import registry
from specjax.measure import timing
from specjax.types import Array, Draft

_TEMPERATURE, _TOP_K, _TOP_P = 0.8, 50, 0.9


class Sorting(NamedTuple):
  """Transforms against their sorting version."""

  rows: int
  vocab: int
  seconds: dict[str, tuple[float, float]]  # by transform: ours, sorting
  ratio: dict[str, float]  # sorting / ours
  same: bool  # both keep the same tokens


class Verification(NamedTuple):
  """`verify` against a copy of the laws that it is given."""

  batch: int
  gamma: int
  vocab: int
  copy_seconds: float
  seconds: dict[str, float]  # by rule
  ratio: dict[str, float]  # to the copy


def transforms(rows: int, vocab: int, repeats: int) -> Sorting:
  """Temperature, top-k, top-p and all three over float32[rows, vocab], with and without a sort.

  The sorting version sorts once for the whole chain, which is its best form.
  """
  scores = jax.random.normal(jax.random.key(0), (rows, vocab)) * 3
  chains = {
      "top_k": (0, _TOP_K, 1.0), "top_p": (0, 0, _TOP_P),
      "temperature, top_k, top_p": (_TEMPERATURE, _TOP_K, _TOP_P)}
  parts, same = {}, True
  for name, (temperature, top_k, top_p) in chains.items():
    transform = logits.chain(
        logits.temperature(temperature or 1), logits.top_k(top_k), logits.top_p(top_p))
    ours = jax.jit(logits.log_law)
    sorting = jax.jit(functools.partial(
        by_sorting, temperature=temperature or 1, top_k=top_k or vocab, top_p=top_p))
    parts[name, 0] = functools.partial(timing.seconds_of, ours, scores, transform)
    parts[name, 1] = functools.partial(timing.seconds_of, sorting, scores)
    kept = np.isfinite(ours(scores, transform)), np.isfinite(sorting(scores))
    same &= bool((kept[0] == kept[1]).all())
  seconds = timing.medians(timing.in_turn(parts, repeats))
  pairs = {name: (seconds[name, 0], seconds[name, 1]) for name in chains}
  return Sorting(rows, vocab, pairs, {name: b / a for name, (a, b) in pairs.items()}, same)


def by_sorting(scores: Array, temperature: float, top_k: int, top_p: float) -> Array:
  """The law float[..., V] of the chain, by one stable sort of every row."""
  scores = scores / temperature
  order = jnp.argsort(scores, axis=-1, descending=True)
  ranked = jnp.take_along_axis(scores, order, axis=-1)
  ranked = jnp.where(jnp.arange(scores.shape[-1]) < top_k, ranked, -jnp.inf)
  law = jax.nn.softmax(ranked, axis=-1)
  before = jnp.cumsum(law, axis=-1) - law  # a token stays if those before it fall short of p
  ranked = jnp.where(before < top_p, ranked, -jnp.inf)
  kept = jnp.put_along_axis(jnp.zeros_like(scores), order, ranked, axis=-1, inplace=False)
  return jax.nn.log_softmax(kept, axis=-1)


def verification(
    rules: list[str], batch: int, gamma: int, vocab: int, repeats: int) -> Verification:
  """`rule.verify` of chains over a batch, against `numpy.copyto` of the two laws."""
  draft, log_p = _chains(batch, gamma, vocab)
  laws = [np.asarray(log_p), np.asarray(draft.log_q)]
  there = [np.copy(law) for law in laws]

  def copy():
    for pair in zip(there, laws):
      np.copyto(*pair)

  parts = {"": functools.partial(timing.seconds_of, copy)}
  for name in rules:
    parts[name] = functools.partial(timing.seconds_of, *_verifying(name, draft, log_p))
  seconds = timing.medians(timing.in_turn(parts, repeats))
  copied = seconds.pop("")
  return Verification(
      batch, gamma, vocab, copied, seconds, {name: s / copied for name, s in seconds.items()})


def _verifying(name: str, draft: Draft, log_p: Array) -> tuple[Callable, ...]:
  """A jitted `verify` of a batch, and its arguments."""
  rule = registry.rule(name)
  rows = jnp.arange(log_p.shape[0])
  key = jax.random.key(1)
  if rule.coupled:
    field = keys.positions(key, rows, jnp.zeros_like(rows), log_p.shape[1])
    draft = draft._replace(tokens=_coupled(field[:, :-1], draft.log_q))
  else:
    field = keys.verify(key, rows, jnp.int32(0))
  return jax.jit(jax.vmap(rule.verify)), field, draft, log_p


@jax.jit
def _coupled(field: Array, log_q: Array) -> Array:
  """The tokens int32[B, N] of chains drawn with the noise that the rule will read."""
  return jax.vmap(jax.vmap(logits.sample))(field, log_q)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _chains(batch: int, gamma: int, vocab: int) -> tuple[Draft, Array]:
  """Random laws, q near p as a drafter's is, and drafts drawn from q."""
  p_key, q_key, draw_key = jax.random.split(jax.random.key(0), 3)
  scores = jax.random.normal(p_key, (batch, gamma + 1, vocab)) * 3
  log_p = jax.nn.log_softmax(scores)
  log_q = jax.nn.log_softmax(scores[:, :-1] + jax.random.normal(q_key, (batch, gamma, vocab)))
  tokens = jax.random.categorical(draw_key, log_q).astype(jnp.int32)
  parents = jnp.broadcast_to(jnp.arange(gamma, dtype=jnp.int32) - 1, tokens.shape)
  return Draft(tokens, parents, log_q, jnp.ones(tokens.shape, bool)), log_p
