"""Plain and speculative decoding as one pure step.

A round proposes a draft, scores it with the target in one pass together with the last committed
token, lets the rule judge it, and commits the accepted path and the extra token. Plain decoding is
the round whose draft is empty.
"""

import functools
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from specjax import keys
from specjax.decode import commit
from specjax.decode.state import prepare, State
from specjax.logits import law, token_counts, uses_counts
from specjax.models import prefill
from specjax.trees import chains, masks
from specjax.types import (
  Array,
  Context,
  Draft,
  Drafter,
  Error,
  method,
  Output,
  PAD,
  Params,
  Proposal,
  PyTree,
  ROOT,
  static,
  Target,
  Verdict,
)
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
    draft_keys, verify_keys = self._keys(key, state)
    context = Context(
        state.tokens, state.lengths, state.cache, functools.partial(self._draft_law, state))
    proposal = self.drafter.propose(draft_keys, params, state.drafter, context)
    draft = proposal.draft
    output, log_p = self._score(params, state, proposal)
    judge = lambda rule, key, draft, log_p: rule.verify(key, draft, log_p, self.drafter.depth)
    per_row = jax.tree.map(lambda number: 0 if jnp.ndim(number) else None, self.rule)
    verdict = jax.vmap(judge, (per_row, 0, 0, 0))(self.rule, verify_keys, draft, log_p)
    failed = state.failed | (~state.done & _not_laws(draft, log_p))
    state = state._replace(failed=failed, done=state.done | failed)
    depths = self._depths(draft.parents)
    verdict = commit.cut(verdict, state, depths)
    cache = output.cache
    if not self.is_chain:
      cache = self.target.commit(cache, state.lengths - 1, verdict.path)
    state = commit.commit(state, verdict)
    drafter = self.drafter.observe(
        params, proposal.state, verdict, output.features, state.lengths)
    return Round(state._replace(cache=cache, drafter=drafter), verdict, depths, draft.valid)

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

  def _score(self, params: Params, state: State, proposal: Proposal) -> tuple[Output, Array]:
    """Passes [last token, draft] through the target: its output and its laws float[B, N + 1, V]."""
    draft = proposal.draft
    last = jnp.take_along_axis(state.tokens, state.lengths[:, None] - 1, axis=1)
    window = jnp.concatenate([last, jnp.where(draft.valid, draft.tokens, 0)], axis=1)
    depths = mask = None
    if not self.is_chain:
      depths = jax.vmap(masks.window_depths)(draft.parents)
      mask = jax.vmap(masks.window_mask)(draft.parents)
    passing = functools.partial(self._pass, params.target, state.lengths - 1)
    if self.drafter.abstains and not self.window:
      whole = lambda cache: passing(cache, window, depths, mask)
      # Without a draft only the root's row is read.
      root_only = lambda cache: _repeat_rows(passing(cache, last, None, None), window.shape[1])
      output = _either(draft.valid.any(), whole, root_only, proposal.cache)
    else:
      output = passing(proposal.cache, window, depths, mask)
    counts = None
    if uses_counts(self.transform):
      counts = _window_counts(state.tokens, draft, output.logits.shape[-1])
    return output, law.log_law(output.logits, self.transform, counts)

  def _pass(
      self, params: PyTree, lengths: Array, cache: PyTree, tokens: Array, depths: Array | None,
      mask: Array | None) -> Output:
    """One pass of the target over tokens int32[B, T], in strict mode through the fixed window."""
    width = tokens.shape[1]
    extra = max(self.window - width, 0)
    tokens = jnp.pad(tokens, ((0, 0), (0, extra)))
    if mask is not None:
      depths = jnp.pad(depths, ((0, 0), (0, extra)))
      mask = jnp.pad(mask, ((0, 0), (0, extra), (0, extra)))
    output = self.target.forward(params, cache, tokens, lengths, depths, mask)
    keep = lambda rows: rows[:, :width]
    return Output(keep(output.logits), jax.tree.map(keep, output.features), output.cache)


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
    Error: if the drafter branches and the rule judges chains only, a draft does not fit the
      strict window, or the transform is no function.
  """
  if drafter.nodes != drafter.depth and not rule.trees:
    raise Error(
        f"The drafter proposes trees ({drafter.nodes} nodes of depth {drafter.depth}), but the "
        "rule judges chains only: choose a rule with rule.trees.")
  window = STRICT_WINDOW if strict is True else int(strict)
  if window and window < drafter.nodes + 1:
    raise Error(
        f"A strict window of {window} rows cannot hold the last token and a draft of "
        f"{drafter.nodes}: pass strict={drafter.nodes + 1} or more, "
        "to every decoder that is to be compared.")
  if not callable(transform):
    raise Error(
        "The transform is a function of logits, as logits.temperature(1.0) makes it, got "
        f"{transform!r}.")
  transform = transform if isinstance(transform, Partial) else Partial(transform)
  return Decoder(target, drafter, rule, transform, window)


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
    init=Partial(chains.no_state), propose=Partial(_no_draft), observe=Partial(chains.same_state),
    nodes=0, depth=0, abstains=False)
_PLAIN = Rule(Partial(_draw_plain), lossless=True, coupled=True, trees=False, bottom_up=False)


def start(
    decoder: Decoder, params: Params, tokens: Array, lengths: Array, limits: Array, rows: Array,
    eos: Array) -> State:
  """The state after reading the prompts, from what `prepare` returned; safe inside jit."""
  return State(
      tokens=tokens, lengths=lengths, limits=limits, eos=eos, rows=rows, round=jnp.int32(0),
      done=jnp.zeros(tokens.shape[0], bool), failed=jnp.zeros(tokens.shape[0], bool),
      cache=prefill.prefill(decoder.target, params.target, tokens, lengths),
      drafter=decoder.drafter.init(params, tokens, lengths))


_start = jax.jit(start)


def _as_params(params: Params | PyTree) -> Params:
  return params if isinstance(params, Params) else Params(params)


def _not_laws(draft: Draft, log_p: Array) -> Array:
  """bool[B]: rows with a law that holds NaN, which `log_law` makes of NaN logits."""
  # The maximum of a row is NaN iff the row holds one: no second pass over V is needed for `any`.
  # Rows below nodes that are not valid are the laws after tokens that nobody drafted.
  reached = jnp.pad(draft.valid, ((0, 0), (1, 0)), constant_values=True)
  bad = (jnp.isnan(log_p.max(-1)) & reached).any(-1)
  if draft.log_q is not None and draft.log_q.shape[1]:
    bad |= (jnp.isnan(draft.log_q.max(-1)) & draft.valid).any(-1)
  return bad


def _either(
    condition: Array, one: Callable[[PyTree], Output], other: Callable[[PyTree], Output],
    cache: PyTree) -> Output:
  """The output of one of two passes over a cache, of equal shapes.

  Two loops of at most one turn, because they write into the cache where it lies: `lax.cond` on a
  CPU copies all of it twice, a tenth of the time of a round.
  """
  shapes = jax.eval_shape(one, cache)._replace(cache=None)
  nothing = jax.tree.map(lambda array: jnp.zeros(array.shape, array.dtype), shapes)

  def perhaps(wanted, pass_, output):
    once = lambda carry: (jnp.bool_(False), pass_(carry[1].cache))
    return lax.while_loop(lambda carry: carry[0], once, (wanted, output))[1]

  output = perhaps(condition, one, nothing._replace(cache=cache))
  return perhaps(~condition, other, output)


def _repeat_rows(output: Output, width: int) -> Output:
  """The output of a pass of one row, as if of `width` equal ones."""
  repeat = lambda rows: jnp.repeat(rows, width, axis=1)
  return Output(repeat(output.logits), jax.tree.map(repeat, output.features), output.cache)


def _window_counts(tokens: Array, draft: Draft, vocab: int) -> Array:
  """int32[B, N + 1, V]: token counts at the root and after each node, along its own path."""
  window = jnp.pad(draft.tokens, ((0, 0), (1, 0)), constant_values=PAD)  # the root is in the text
  path = jax.vmap(masks.window_mask)(draft.parents)
  along = token_counts(jnp.where(path, window[:, None, :], PAD), vocab)
  return token_counts(tokens, vocab)[:, None] + along
