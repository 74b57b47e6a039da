"""Audits the claim that texts do not depend on what drafts them.

At temperature 0, and at any temperature under a coupled rule, the text is a function of (seed,
target) alone. In strict mode that holds bit for bit, logits included; in normal mode a pass of
another width rounds differently, so texts may part at a near-tie of the target's scores and there
only.
"""

import itertools
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.audits import fingerprint
from specjax import decode, keys, loading, logits
from specjax.launch import divergence, registry
from specjax.types import Params

NEAR_TIE = 1e-3  # of the scores' gap; logits of two widths differ by up to 2e-4 (float32)


class Audited(NamedTuple):
  """A model, and the prompts that it answers."""

  model: loading.Model
  prompts: list[list[int]]


class Case(NamedTuple):
  """One way to decode; `row` and `batch` order are varied through `batch_size` and `reverse`."""

  drafter: str  # as config.drafter names it, one without parameters of its own
  gamma: int
  rule: str  # as config.rule names it
  temperature: float
  strict: int  # rows of the window, 0 for normal mode
  batch_size: int
  reverse: bool  # prompts in the opposite order, so that rows stand elsewhere in their batch


class Finding(NamedTuple):
  """What a case showed against plain decoding."""

  case: Case
  tokens: int  # compared
  mismatches: int  # prompts whose texts part
  prints: int  # positions whose logits were compared bit for bit; 0 in normal mode
  unequal_prints: int
  divergences: list[tuple[int, int, float]]  # (prompt, position in the answer, gap of the scores)

  @property
  def holds(self) -> bool:
    if self.case.strict:
      return self.mismatches == self.unequal_prints == 0
    return all(gap < NEAR_TIE for _, _, gap in self.divergences)


class Texts(NamedTuple):
  answers: list[list[int]]
  prints: list[list[int]]  # fingerprints of the logits that each token was drawn from


def cases(layers: int, gammas, temperatures, strict: int, batch: int) -> list[Case]:
  """The grid: every drafter, gamma and temperature, strict and normal, single rows and batches."""
  grid = []
  names = ("ngram", f"layer_skip:{layers}")
  for drafter, gamma, t in itertools.product(names, gammas, temperatures):
    for rule in ("token", "gumbel") if t == 0 else ("gumbel",):
      grid.append(Case(drafter, gamma, rule, t, strict, 1, False))
  middle = gammas[len(gammas) // 2]
  for drafter, t, window in itertools.product(names, temperatures, (strict, 0)):
    grid.append(Case(drafter, middle, "gumbel", t, window, batch, True))
    if not window:
      grid.append(Case(drafter, middle, "gumbel", t, 0, 1, False))
  return grid


def audit(
    audited: Audited, grid: list[Case], key: jax.Array, max_new_tokens: int,
    progress: Callable[[], None] = lambda: None) -> list[Finding]:
  """Decodes every case and compares it with plain decoding of single rows in the same mode."""
  plain, findings = {}, []
  for case in grid:
    reference = (case.temperature, case.strict)
    if reference not in plain:
      decoder = decode.autoregressive(
          fingerprint.fingerprinted(audited.model.target()), logits.temperature(case.temperature),
          case.strict)
      plain[reference] = _texts(audited, decoder, key, max_new_tokens, 1, False)
    texts = _texts(
        audited, _decoder(audited.model, case), key, max_new_tokens, case.batch_size, case.reverse)
    findings.append(_compare(audited, case, key, texts, plain[reference]))
    progress()
  return findings


def _decoder(model: loading.Model, case: Case) -> decode.Decoder:
  """A drafter with parameters of its own would need them beside the target's: there is none."""
  drafter = registry.drafter(case.drafter, case.gamma, model, loading.load).drafter
  return decode.speculative(
      fingerprint.fingerprinted(model.target(drafter.captures)),
      fingerprint.drafting_behind(drafter), registry.rule(case.rule),
      logits.temperature(case.temperature), case.strict)


def _texts(audited, decoder, key, max_new_tokens, batch_size, reverse) -> Texts:
  order = list(range(len(audited.prompts)))[::-1 if reverse else 1]
  size = 1 if decoder.window else batch_size  # strict mode decodes rows one by one
  answers, prints = {}, {}
  for first in range(0, len(order), size):
    rows = order[first:first + size]
    batch = decode.run_batch(
        decoder, key, Params(audited.model.params), [audited.prompts[row] for row in rows],
        max_new_tokens, rows=rows)
    seen = np.asarray(batch.state.cache[1])
    for place, (row, answer) in enumerate(zip(rows, batch.tokens)):
      begin = len(audited.prompts[row]) - 1  # the prompt's last token gives the first of the answer
      answers[row] = answer
      prints[row] = seen[place, begin:begin + len(answer)].tolist()
  return Texts(*([texts[row] for row in range(len(order))] for texts in (answers, prints)))


def _compare(audited, case, key, texts: Texts, plain: Texts) -> Finding:
  tokens = prints = unequal = 0
  divergences = []
  for row, (ours, theirs) in enumerate(zip(texts.answers, plain.answers)):
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), len(theirs))
    tokens += min(same + 1, len(theirs))
    if ours != theirs:
      divergences.append((row, same, _gap(audited, case, key, row, theirs[:same])))
    if case.strict:
      # The logits before a differing token follow equal texts, so they are compared too.
      compared = min(same + 1, len(theirs))
      prints += compared
      unequal += sum(
          a != b for a, b in zip(texts.prints[row][:compared], plain.prints[row][:compared]))
  return Finding(case, tokens, len(divergences), prints, unequal, divergences)


def _gap(audited, case, key, row, answer) -> float:
  """The target's best score less its second best after prompt and answer, noise included."""
  text = audited.prompts[row] + answer
  plain = decode.autoregressive(audited.model.target(), logits.chain())
  scores = divergence.next_logits(plain, Params(audited.model.params), text)
  if case.temperature:
    field = keys.positions(key, jnp.array([row]), jnp.array([len(text)]), 1)[0, 0]
    law = logits.log_law(scores, logits.temperature(case.temperature))
    scores = law + logits.noise(field, law.shape, law.dtype)
  return divergence.margin(scores)
