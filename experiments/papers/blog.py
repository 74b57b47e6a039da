"""Figures of a blog post on speculative decoding whose address could not be found.

They are plain arithmetic on the numbers that each row names, and are labelled so.
"""

import functools

from experiments.papers import toys
from experiments.papers.claim import ARITHMETIC, Claim, Paper
from specjax import theory
from specjax.exact import coupling

_PAIRS = (  # the only two pairs of one-decimal laws over 3 or 4 tokens that print as .679 and .70
    ((0.4, 0.3, 0.3), (0.1, 0.4, 0.5)),
    ((0.5, 0.4, 0.1), (0.7, 0.1, 0.2)))


def _h100():
  return theory.roofline("H100", 8.03e9)


def _roofline():
  yield Claim("arithmetic", "milliseconds to read 8.03e9 bfloat16 weights on one H100", 4.8,
              lambda: 1e3 * _h100().seconds, 0.05, origin=ARITHMETIC)
  yield Claim("arithmetic", "tokens a second that this allows", 208,
              lambda: _h100().tokens_per_second, 1, origin=ARITHMETIC,
              note="208.3 if the 4.8 ms are rounded first")
  yield Claim("arithmetic", "rows of a pass before arithmetic takes over (ridge, FLOP / byte)", 295,
              lambda: _h100().free_rows, 0.5, origin=ARITHMETIC)


def _gumbel():
  for p, q in _PAIRS:
    place = f"arithmetic, candidate pair {p}, {q}"
    yield Claim(place, "acceptance under shared Gumbel noise", 0.679,
                functools.partial(toys.gumbel, (p, q)), 0.0005, origin=ARITHMETIC,
                note="the pair of the post is not known")
    yield Claim(place, "lower bound (1 - TV) / (1 + TV)", 0.5385,
                functools.partial(toys.closed, coupling.guarantee, (p, q)), 0.00005,
                origin=ARITHMETIC)
    yield Claim(place, "overlap 1 - TV of the same pair", 0.70,
                functools.partial(toys.overlap, (p, q)), origin=ARITHMETIC)


PAPER = Paper(
    name="speculative decoding blog figures (source not located)",
    title="figures of a post that could not be found; the rows are arithmetic",
    claims=(
        *_roofline(),
        Claim("arithmetic", "tokens a pass at alpha = 0.8, gamma = 5", 3.69,
              lambda: theory.expected_tokens(0.8, 5), 0.005, origin=ARITHMETIC),
        Claim("arithmetic", "speed at alpha = 0.8, gamma = 5, c = 0.05", 2.95,
              lambda: theory.speedup(0.8, 5, 0.05), 0.005, origin=ARITHMETIC),
        *_gumbel()))
