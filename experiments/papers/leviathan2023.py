"""Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding"."""

import functools

import numpy as np

from experiments.papers import decoding, rounds, toys, weights
from experiments.papers.claim import Claim, derived, MEASURED, needs_weights, Paper, UNCHECKED
from specjax import theory, verify

_ALPHAS = np.array([0.5, 0.6, 0.7, 0.8, 0.9])

_TABLE_1 = (  # alpha, gamma, operations, speed
    (0.6, 2, 1.53, 1.96), (0.7, 3, 1.58, 2.53), (0.8, 2, 1.23, 2.44),
    (0.8, 5, 1.63, 3.69), (0.9, 2, 1.11, 2.71), (0.9, 10, 1.60, 6.86))

_OPTIMUM = (  # c, best gamma and its speed for the alphas above
    (0.01, (5, 7, 9, 14, 24), (1.875, 2.297, 2.972, 4.232, 7.486)),
    (0.02, (4, 6, 8, 11, 19), (1.794, 2.170, 2.758, 3.817, 6.365)),
    (0.05, (3, 4, 6, 8, 13), (1.630, 1.921, 2.353, 3.092, 4.674)),
    (0.10, (2, 3, 4, 6, 10), (1.458, 1.674, 1.981, 2.470, 3.431)))

_LENIENCE = ((1.0, 0.75, 3.3), (0.5, 0.75, 3.3), (0.3, 0.80, 3.9), (0.1, 0.87, 4.9))

_ACCEPTED = (  # pair, laws, E[tau] for gamma = 1, 2, ...
    ("AB", toys.AB, (2 / 3, 10 / 9, 38 / 27, 130 / 81, 422 / 243, 1330 / 729)),
    ("P3", toys.P3, (0.7, 1.19, 1.533)), ("S3", toys.S3, (1 / 2, 3 / 4, 7 / 8)))


_ALPHA = (  # at temperature 0 for each drafter, then at 1
    ("T5-small, base, large for T5-XXL, English to German", (0.75, 0.80, 0.82, 0.62, 0.68, 0.71)),
    ("T5-small, base, large for T5-XXL, CNN/DailyMail", (0.65, 0.73, 0.74, 0.53, 0.55, 0.56)),
    ("a 6M drafter for a GPT of 97M, lm1b", (0.88, 0.89)),
    ("100M, 2B, 8B drafters for LaMDA 137B", (0.61, 0.71, 0.75, 0.57, 0.71, 0.74)))


def _best_speed(c):
  return theory.speedup(_ALPHAS, theory.optimal_gamma(_ALPHAS, c), c)


def _table_1():
  for alpha, gamma, operations, speed in _TABLE_1:
    at = f"alpha = {alpha}, gamma = {gamma}, c = c_hat = 0"
    yield Claim("table 1", f"factor of operations, {at}", operations,
                functools.partial(theory.operation_factor, alpha, gamma, 0), 0.005)
    yield Claim("table 1", f"speed, {at}", speed,
                functools.partial(theory.speedup, alpha, gamma, 0), 0.005)


def _single_formulas():
  yield Claim("section 4.2", "speed of a bigram drafter, alpha = 0.2, gamma = 3, c = 0", 1.25,
              lambda: theory.speedup(0.2, 3, 0), 0.005)
  yield derived("corollary 3.9", "speed (1 + alpha) / (1 + c) at gamma = 1, alpha = 0.5, c = 0.05",
                1.5 / 1.05, lambda: theory.speedup(0.5, 1, 0.05))
  yield derived("corollary 3.9", "smallest alpha with a gain at gamma = 1, c = 0.05", 0.05,
                lambda: theory.break_even_alpha(1, 0.05))


def _optimum():
  for c, gammas, speeds in _OPTIMUM:
    at = f"c = {c}, alpha = 0.5 .. 0.9"
    yield derived("section 3.5", f"best gamma, {at}", gammas,
                  functools.partial(theory.optimal_gamma, _ALPHAS, c), 0)
    yield derived("section 3.5", f"speed at the best gamma, {at}", speeds,
                  functools.partial(_best_speed, c), 0.0005)


def _lenience():
  p, q = map(np.asarray, toys.P3)
  lenient = functools.partial(verify.lenient, 0.8)
  yield derived("appendix A.5", "alpha of pair P3 with lenience 0.8", 0.775,
                lambda: theory.lenient_acceptance(p, q, 0.8))
  yield derived("appendix A.5", "law of the token, pair P3 with lenience 0.8",
                (0.375, 15 / 38, 35 / 152), lambda: toys.output(lenient, toys.P3),
                note="with the residual [p - 0.8 q]+, which the paper does not restate")
  for factor, alpha, speed in _LENIENCE:
    yield Claim("appendix A.5", f"speed at T = 0 with lenience {factor} (alpha = {alpha}), "
                "gamma = 8, c = 0.015", speed,
                functools.partial(theory.speedup, alpha, 8, 0.015), 0.05)


def _accepted():
  for name, laws, values in _ACCEPTED:
    gammas = range(1, len(values) + 1)
    yield derived("algorithm 1", f"E[tau] of pair {name}, gamma = 1 .. {gammas[-1]}", values,
                  functools.partial(rounds.chain_taus, verify.token, laws, gammas))
  laws = (0.5, 0.3, 0.2), (0.3, 0.3, 0.4)
  yield derived("equation 1", "tokens a pass of the decoder, alpha = 0.8, gamma = 5", 3.68928,
                functools.partial(decoding.tokens_per_pass, verify.token, laws, 5), 0.024,
                kind=MEASURED,
                note=f"table models {laws[0]}, {laws[1]}; 71000 passes, 3 sigma: 0.022")


def _needed_alphas():
  """The alphas at which the best gamma gives the speeds that the paper has for T = 1."""
  alphas = np.linspace(0.5, 0.9, 4001)
  speeds = theory.speedup(alphas, theory.optimal_gamma(alphas, 0.015), 0.015)
  return np.interp((2.5, 3.1, 3.6, 5.0), speeds, alphas)


def _measured():
  yield derived("appendix A.5", "alphas behind the speeds 2.5, 3.1, 3.6, 5.0 at T = 1, c = 0.015, "
                "best gamma", (0.650, 0.728, 0.772, 0.849), _needed_alphas, 0.0006)
  command = weights.sweep("T5_XXL", "T5_SMALL", "token", 7, "0,1", "PROMPTS.jsonl")
  for task, speeds in (("English to German", (3.4, 2.6)), ("CNN/DailyMail", (3.1, 2.3))):
    yield needs_weights(
        "table 2", f"speed of T5-XXL with T5-small, {task}, T = 0 and 1", speeds, command)
  for models, alphas in _ALPHA:
    yield needs_weights(
        "table 3", f"alpha of {models}, T = 0 and then 1", alphas, command, UNCHECKED)


PAPER = Paper(
    name="leviathan2023",
    title="Fast Inference from Transformers via Speculative Decoding, ICML 2023, arXiv 2211.17192",
    claims=(*_table_1(), *_single_formulas(), *_optimum(), *_lenience(), *_accepted(),
            *_measured()))
