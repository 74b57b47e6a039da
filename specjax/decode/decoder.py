"""Plain and speculative decoding as one pure step.

A round proposes a draft, scores it with the target in one pass together with the last committed
token, lets the rule judge it, and commits the accepted path and the extra token. Plain decoding is
the round whose draft is empty.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from specjax import keys
from specjax.decode import commit, prefill, score
from specjax.decode.state import prepare, State
from specjax.logits import law, token_counts, uses_counts
from specjax.trees import chains, masks
from specjax.types import (
    Array, CHAIN, Context, Draft, Drafter, Error, method, Params, Proposal, PyTree, ROOT, SIBLINGS,
    static, Target, Verdict)
from specjax.verify.rule import Rule

STRICT_WINDOW = 8  # rows; the widest pass that costs a CPU little more than four
_DEFAULT_NEW_TOKENS = 256


@method
class Decoder:
  """A target, a drafter, a rule and a transform of logits; numbers in them are arrays.

  `params` is `Params(target, drafter)`, or the target's parameters alone. Numbers of the transform
  and of the rule are scalars, or [B] for rows with numbers of their own.
  """

  target: Target
  drafter: Drafter
  rule: Rule
  transform: Partial
  window: int = static()  # rows of every scoring pass in strict mode; 0 otherwise

  def init(
      self, params: Params | PyTree, prompts: Array, lengths: Array, *,
      max_new_tokens: int = _DEFAULT_NEW_TOKENS, eos=(), rows: Array | None = None) -> State:
    """Reads the prompts; call it outside of jit, since it checks what it is given.

    Args:
      params: see the class.
      prompts: int32[B, P]; what stands beyond a row's length is ignored.
      lengths: int32[B], tokens of each prompt.
      max_new_tokens: tokens after which a row ends; the context limit of the target may end it
        sooner.
      eos: tokens that end a row.
      rows: int32[B] row ids, 0 .. B - 1 if not given. A row's randomness depends on the key and its
        id alone.

    Raises:
      Error: an empty prompt, one that does not fit the context, a token outside the
        vocabulary, in a prompt or in `eos`; several rows in strict mode, where the width of a batch
        would change the bits.
    """
    if self.window and len(lengths) > 1:
      raise Error(
          f"Strict mode decodes one row at a time, got {len(lengths)}; "
          "`generate` does so by itself.")
    prepared = prepare(
        self.target, self.room, prompts, lengths, max_new_tokens, eos, rows)
    return _start(self, _as_params(params), *prepared)

  def step(self, key: Array, params: Params | PyTree, state: State) -> tuple[State, Verdict]:
    """One round for every row that is not done; the verdict holds what was committed.

    `key` is the key of the whole generation: rounds and positions are folded in here.
    """
    played = self.play(key, params, state)
    return played.state, played.verdict

  def play(self, key: Array, params: Params | PyTree, state: State) -> "Round":
    """`step`, and the shape of the draft beside its outcome."""
    params = _as_params(params)
    # Propose: the drafter grows its draft, and may use the target's cache on the way.
    proposal = self.propose(key, params, state)
    draft = proposal.draft
    # Score: one pass of the target gives the law after the root and after each node.
    output, log_p = score.score(
        self.target, self.transform, params, state, proposal, chain=self.is_chain,
        abstains=self.drafter.abstains, window=self.window)
    # Judge: every row by itself. A row whose laws are not laws ends before a token comes of them.
    verdict = self._judge(key, state, draft, log_p)
    failed = state.failed | (~state.done & score.not_laws(draft, log_p))
    state = state._replace(failed=failed, done=state.done | failed)
    # Commit: what stands in the text goes into tokens, cache and the drafter's memory.
    depths = self._depths(draft.parents)
    verdict = commit.cut(verdict, state, depths)
    cache = output.cache
    if not self.is_chain:
      cache = self.target.commit(cache, state.lengths - 1, verdict.path)
    state = commit.commit(state, verdict)._replace(cache=cache)
    drafter = self.drafter.observe(
        params, proposal.state, verdict, output.features, self._context(state))
    return Round(state._replace(drafter=drafter), verdict, depths, draft.valid)

  def propose(self, key: Array, params: Params | PyTree, state: State) -> Proposal:
    """The draft of the next round, as `step` will judge it; `key` as there."""
    draft_keys, _ = self._keys(key, state)
    return self.drafter.propose(
        draft_keys, _as_params(params), state.drafter, self._context(state))

  def _judge(self, key: Array, state: State, draft: Draft, log_p: Array) -> Verdict:
    """The rule's batched verdict; numbers of the rule that are arrays have one entry a row."""
    def judge(rule, key, draft, log_p):
      return rule.verify(key, draft, log_p, self.drafter.depth)

    _, verify_keys = self._keys(key, state)
    per_row = jax.tree.map(lambda number: 0 if jnp.ndim(number) else None, self.rule)
    return jax.vmap(judge, (per_row, 0, 0, 0))(self.rule, verify_keys, draft, log_p)

  def _context(self, state: State) -> Context:
    return Context(
        state.tokens, state.lengths, state.cache, functools.partial(self._draft_law, state))

  @property
  def is_chain(self) -> bool:
    """A tree with one node for each depth is a chain: it needs no mask and no compaction."""
    return self.drafter.nodes == self.drafter.depth

  @property
  def room(self) -> int:
    """Slots that a scoring pass may write behind the last committed token."""
    return max(self.drafter.nodes, self.window - 1)

  def _depths(self, parents: Array) -> Array:
    """int32[B, N]: the depth of each drafted node."""
    if self.is_chain:
      return jnp.broadcast_to(jnp.arange(self.drafter.nodes), parents.shape)
    return jax.vmap(masks.window_depths)(parents)[:, 1:] - 1

  def _keys(self, key: Array, state: State) -> tuple[Array, Array]:
    """The drafter's key[B, D] and the rule's key[B], or key[B, D + 1] if it is coupled."""
    depth = self.drafter.depth
    if self.rule.coupled:
      field = keys.positions(key, state.rows, state.lengths, depth + 1)
      return field[:, :depth], field
    return (keys.draft(key, state.rows, state.round, depth),
            keys.verify(key, state.rows, state.round))

  def _draft_law(self, state: State, logits: Array, drafted: Array) -> Array:
    """float[B, V]: the drafter's law after the drafted tokens int32[B, D] (PAD where none yet)."""
    counts = None
    if uses_counts(self.transform):
      vocab = logits.shape[-1]
      counts = (token_counts(state.tokens, vocab) + token_counts(drafted, vocab))[:, None]
    return law.log_law(logits[:, None], self.transform, counts)[:, 0]


class Round(NamedTuple):
  """One round, as `Decoder.play` returns it."""

  state: State
  verdict: Verdict  # of what was committed; every field with a leading batch axis
  depths: Array  # int32[B, N]: the depth of each node
  valid: Array  # bool[B, N]: the nodes that were drafted


def speculative(
    target: Target, drafter: Drafter, rule: Rule, transform, strict: bool | int = False) -> Decoder:
  """Speculative decoding: the drafter proposes, the target scores, the rule judges.

  Args:
    target: the model whose law the text has (for a lossless rule).
    drafter: what proposes the tokens; it draws from its law under the same transform.
    rule: a verification rule.
    transform: float[..., V] -> float[..., V] on logits, as in `specjax.logits`.
    strict: True, or a number W of rows: every pass of the target, whatever is drafted, goes through
      one window of W rows (True: STRICT_WINDOW). The logits of a position are then the same bits
      wherever it stands in the window, so texts at temperature 0 and under coupled rules do not
      depend on the drafter. Decoders that are compared must share W and the cache's capacity.

  Raises:
    Error: the rule is lossless, but not for drafts that are drawn as this drafter's are; the
      drafter branches and the rule judges chains only; a draft does not fit the strict window, or
      branches in it; the target does not capture the hidden states that the drafter reads; the
      transform is no function.
  """
  _check_pair(target, drafter, rule)
  window = STRICT_WINDOW if strict is True else int(strict)
  if window:
    _check_window(window, drafter)
  if not callable(transform):
    raise Error(
        "The transform is a function of logits, as logits.temperature(1.0) makes it, got "
        f"{transform!r}.")
  transform = transform if isinstance(transform, Partial) else Partial(transform)
  return Decoder(target, drafter, rule, transform, window)


def _check_pair(target: Target, drafter: Drafter, rule: Rule) -> None:
  if drafter.siblings not in SIBLINGS:
    raise Error(
        f"A drafter's `siblings` is one of {', '.join(map(repr, SIBLINGS))}, got "
        f"{drafter.siblings!r}.")
  rule.check_serves(drafter.siblings, is_chain=drafter.nodes == drafter.depth)
  if drafter.captures and drafter.captures != target.captures:
    raise Error(
        f"The drafter reads the target's hidden states {drafter.captures}, but the target captures "
        f"{target.captures or 'none'}: make it with captures={drafter.captures}.")


def _check_window(window: int, drafter: Drafter) -> None:
  if window < drafter.nodes + 1:
    raise Error(
        f"A strict window of {window} rows cannot hold the last token and a draft of "
        f"{drafter.nodes}: pass strict={drafter.nodes + 1} or more, "
        "to every decoder that is to be compared.")
  if drafter.nodes != drafter.depth:
    raise Error(
        f"Strict mode and token trees exclude each other, and this drafter grows trees "
        f"({drafter.nodes} nodes of depth {drafter.depth}). Attention sums over the slots of the "
        "cache, and the path of a node stands in other slots than that of a chain, so its logits "
        "have other bits. Decode without strict mode, or with a drafter of chains.")


def autoregressive(target: Target, transform, strict: bool | int = False) -> Decoder:
  """Plain decoding, one token a pass, drawn with the noise of its absolute position.

  Coupled rules read the same noise, so with one key their text is this text. Arguments as in
  `speculative`.
  """
  return speculative(target, _NO_DRAFTER, _PLAIN, transform, strict)


def _no_draft(keys: Array, params: Params, state: tuple, context: Context) -> Proposal:
  empty = jnp.zeros((keys.shape[0], 0), jnp.int32)
  return Proposal(chains.chain(empty, None, empty.astype(bool)), state, context.cache)


def _draw_plain(keys: Array, draft: Draft, log_p: Array) -> tuple[Array, Array]:
  return jnp.int32(ROOT), law.sample(keys[0], log_p[0])


_NO_DRAFTER = Drafter(
    propose=Partial(_no_draft), nodes=0, depth=0, abstains=False, siblings=CHAIN)
_PLAIN = Rule(
    Partial(_draw_plain), lossless=True, coupled=True, serves=frozenset((CHAIN,)), bottom_up=False)


def start(
    decoder: Decoder, params: Params, tokens: Array, lengths: Array, limits: Array, rows: Array,
    eos: Array) -> State:
  """The state after reading the prompts, from what `prepare` returned; safe inside jit."""
  cache, drafter = prefill.prefill(decoder.target, decoder.drafter, params, tokens, lengths)
  return State(
      tokens=tokens, lengths=lengths, limits=limits, eos=eos, rows=rows, round=jnp.int32(0),
      done=jnp.zeros(tokens.shape[0], bool), failed=jnp.zeros(tokens.shape[0], bool),
      cache=cache, drafter=drafter)


_start = jax.jit(start)


def _as_params(params: Params | PyTree) -> Params:
  return params if isinstance(params, Params) else Params(params)
