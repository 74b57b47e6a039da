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
from specjax import decode, drafters, keys, logits, verify
from specjax.models import transformer
from specjax.models.config import ModelConfig
from specjax.types import Drafter, PyTree

NEAR_TIE = 1e-3  # of the scores' gap; logits of two widths differ by up to 2e-4 (float32)


class Subject(NamedTuple):
  """What is audited."""

  config: ModelConfig
  params: PyTree
  prompts: list[list[int]]


class Case(NamedTuple):
  """One way to decode; `row` and `batch` order are varied through `batch_size` and `reverse`."""

  drafter: str  # ngram, or layer_skip:LAYERS
  gamma: int
  rule: str
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
    subject: Subject, grid: list[Case], key: jax.Array, max_new_tokens: int,
    progress: Callable[[], None] = lambda: None) -> list[Finding]:
  """Decodes every case and compares it with plain decoding of single rows in the same mode."""
  plain, findings = {}, []
  for case in grid:
    reference = (case.temperature, case.strict)
    if reference not in plain:
      decoder = decode.autoregressive(
          _target(subject), logits.temperature(case.temperature), case.strict)
      plain[reference] = _texts(subject, decoder, key, max_new_tokens, 1, False)
    texts = _texts(
        subject, _decoder(subject, case), key, max_new_tokens, case.batch_size, case.reverse)
    findings.append(_compare(subject, case, key, texts, plain[reference]))
    progress()
  return findings


def _target(subject: Subject):
  return fingerprint.fingerprinted(transformer.target(subject.config))


def _drafter(subject: Subject, name: str, gamma: int) -> Drafter:
  if name == "ngram":
    return drafters.ngram(gamma)
  exit_model = transformer.early_exit(subject.config, int(name.partition(":")[2]))
  return drafters.layer_skip(fingerprint.fingerprinted(exit_model), gamma)


def _decoder(subject: Subject, case: Case) -> decode.Decoder:
  return decode.speculative(
      _target(subject), _drafter(subject, case.drafter, case.gamma), getattr(verify, case.rule)(),
      logits.temperature(case.temperature), case.strict)


def _texts(subject, decoder, key, max_new_tokens, batch_size, reverse) -> Texts:
  order = list(range(len(subject.prompts)))[::-1 if reverse else 1]
  size = 1 if decoder.window else batch_size  # strict mode decodes rows one by one
  answers, prints = {}, {}
  for first in range(0, len(order), size):
    rows = order[first:first + size]
    batch = decode.run_batch(
        decoder, key, subject.params, [subject.prompts[row] for row in rows], max_new_tokens,
        rows=rows)
    seen = np.asarray(batch.state.cache[1])
    for place, (row, answer) in enumerate(zip(rows, batch.tokens)):
      begin = len(subject.prompts[row])
      answers[row] = answer
      prints[row] = seen[place, begin - 1:begin - 1 + len(answer)].tolist()
  in_order = lambda texts: [texts[row] for row in range(len(order))]
  return Texts(in_order(answers), in_order(prints))


def _compare(subject, case, key, texts: Texts, plain: Texts) -> Finding:
  tokens = prints = unequal = 0
  divergences = []
  for row, (ours, theirs) in enumerate(zip(texts.answers, plain.answers)):
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), len(theirs))
    tokens += min(same + 1, len(theirs))
    if ours != theirs:
      divergences.append((row, same, _gap(subject, case, key, row, theirs[:same])))
    if case.strict:
      # The logits before a differing token follow equal texts, so they are compared too.
      compared = min(same + 1, len(theirs))
      prints += compared
      unequal += sum(
          a != b for a, b in zip(texts.prints[row][:compared], plain.prints[row][:compared]))
  return Finding(case, tokens, len(divergences), prints, unequal, divergences)


def _gap(subject, case, key, row, answer) -> float:
  """The target's best score less its second best after prompt and answer, noise included."""
  text = np.array([subject.prompts[row] + answer], np.int32)
  target = transformer.target(subject.config)
  state = decode.autoregressive(target, logits.chain()).init(
      subject.params, text, np.array([text.shape[1]]))
  output = target.forward(
      subject.params, state.cache, text[:, -1:], state.lengths - 1)
  transform = logits.temperature(case.temperature)
  if case.temperature == 0:
    scores = output.logits[0, 0]
  else:
    field = keys.positions(key, jnp.array([row]), state.lengths, 1)[0, 0]
    law = logits.log_law(output.logits[0, 0], transform)
    scores = law + logits.noise(field, law.shape, law.dtype)
  best = np.asarray(jax.lax.top_k(scores, 2)[0])
  return float(best[0] - best[1])
