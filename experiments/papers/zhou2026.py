"""Zhou, Huang, Li, Wu, Wang, Zhang, Lin, Cheng, hierarchical speculative decoding (HSD).

The rule is written here from the paper's own definitions, so that its identity with block
verification is a finding and not an assumption.
"""

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from experiments.papers import backward, rounds, toys, weights
from experiments.papers.claim import Claim, Contradiction, derived, needs_weights, Paper
from specjax import verify
from specjax.exact import drafts
from specjax.verify import Rule

_RATIOS = np.divide(  # p / q of the ten drafted tokens of the running example (GSM8K)
    (0.7156, 1, 1, 1, 0, 0, 0, 1, 0, 0.4968),
    (0.8771, 0.7900, 0.6514, 0.2592, 0.6773, 0.1490, 0.5775, 1, 0.4611, 0.3630))

_EFFICIENCY = (  # task, model, block efficiency of token verification, block verification, HSD
    ("GSM8K", "14B", (5.99, 6.13, 6.30)), ("GSM8K", "32B", (6.14, 6.26, 6.47)),
    ("GSM8K", "72B", (6.44, 6.53, 6.65)), ("HumanEval", "14B", (4.83, 5.11, 5.29)),
    ("HumanEval", "32B", (4.89, 5.15, 5.49)), ("HumanEval", "72B", (5.23, 5.34, 5.40)),
    ("CNN/DailyMail", "14B", (2.39, 2.50, 2.59)), ("CNN/DailyMail", "32B", (2.36, 2.42, 2.46)),
    ("CNN/DailyMail", "72B", (2.35, 2.39, 2.45)))


def hierarchical() -> Rule:
  """Algorithm 2: branch divergences of capped ratios, scanned from the end of the draft."""
  return Rule(
      Partial(_algorithm_2), lossless=True, coupled=False, serves=verify.CHAINS, bottom_up=True)


def released() -> Rule:
  """The first released code: the whole draft is judged by its joint ratio, without the cap."""
  return Rule(
      Partial(_released), lossless=False, coupled=False, serves=verify.CHAINS, bottom_up=True)


def naive() -> Rule:
  """No cap at all. Only its E[tau] has a meaning here: it resamples the rest of the draft."""
  return Rule(Partial(_naive), lossless=False, coupled=False, serves=verify.CHAINS, bottom_up=True)


def since_peak(ratios):
  """float[g + 1]: min(r(X^m), 1) r(X_{m+1} .. X_t) for t = 0 .. g, from the ratios p / q float[g].

  m <= t is where the joint ratio r is largest, or 0 if it never exceeds 1; the product of the
  ratios after it is what is left of r once its excess over 1 is gone.
  """
  joint, index = backward.joint(ratios), jnp.arange(ratios.shape[0])
  products = []
  for t in range(ratios.shape[0] + 1):
    peak = jnp.argmax(joint[:t + 1])
    after = jnp.where((index >= peak) & (index < t), ratios, 1).prod()
    products.append(jnp.minimum(joint[peak], 1) * after)
  return jnp.stack(products)


def _algorithm_2(draft, log_p):
  ratios = backward.ratios(draft, log_p)
  caps = since_peak(ratios)[:-1]
  return backward.judge(draft, log_p, caps, caps * ratios, lambda gain, loss: loss)


def _released(draft, log_p):
  ratios = backward.ratios(draft, log_p)
  caps, joint = since_peak(ratios)[:-1], backward.joint(ratios)
  return backward.judge(draft, log_p, caps, joint[1:], lambda gain, loss: loss)


def _naive(draft, log_p):
  joint = backward.joint(backward.ratios(draft, log_p))
  return backward.judge(draft, log_p, joint[:-1], joint[1:], jnp.maximum)


@toys.in_float64
def _example(function):
  """The first five values after the empty prefix."""
  return np.asarray(toys.jit(function)(jnp.asarray(_RATIOS)))[1:6]


def _identity():
  yield derived("algorithm 2", "largest distance of its joint law (stop, token) from that of block "
                "verification, random and degenerate systems, gamma = 3", 0.0,
                lambda: rounds.largest_gap(hierarchical, verify.block, 3),
                note="an identity that the paper does not state")
  yield derived("losslessness", "largest TV of text and target under algorithm 2, same systems",
                0.0, lambda: rounds.certificate(hierarchical, drafts.chain(3)).max_tv)
  yield derived("naive HSD", "E[tau] of pair AB, gamma = 2, 3, 4", (4 / 3, 50 / 27, 64 / 27),
                lambda: rounds.chain_taus(naive, toys.AB, (2, 3, 4)))
  yield Claim("running example", "joint ratios after 1 .. 5 tokens",
              (0.8159, 1.0327, 1.5855, 6.1171, 0), lambda: _example(backward.joint), 0.0005)
  yield Claim("running example", "capped ratios after 1 .. 5 tokens, at most 1",
              (0.8159, 1, 1, 1, 0), lambda: _example(since_peak), 0.0005)


def _released_code():
  at = "pair AB, gamma = 2, without the cap on the whole draft"
  yield derived("released code", f"E[tau] of {at}", 4 / 3,
                lambda: rounds.chain_tau(released, toys.AB, 2))
  yield derived("released code", f"TV of text and target, {at}", 1 / 9,
                lambda: rounds.chain_tv(released, toys.AB, 2))


def _measured():
  for task, model, values in _EFFICIENCY:
    yield needs_weights(
        "table 1", f"block efficiency of token, block and HSD, {task}, Qwen2.5-{model} with 0.5B, "
        "gamma = 10", values,
        weights.sweep(f"QWEN2.5_{model}", "QWEN2.5_0.5B", "token,block", 10, 1, "PROMPTS.jsonl"))


def _excess() -> str:
  gap = rounds.largest_gap(hierarchical, verify.block, 3)
  return (f"Here the two laws differ by {gap:.1e} at most over random and degenerate systems: "
          "algorithm 2 is block verification, which no lossless rule for one path exceeds.")


def _lossy() -> str:
  tv = rounds.chain_tv(released, toys.AB, 2)
  return ("Without the cap on the whole draft, as in the first released code, the text of pair AB "
          f"(gamma = 2) has total variation {tv:.6f} from the target's.")


PAPER = Paper(
    name="zhou2026",
    title="Hierarchical Speculative Decoding, ICLR 2026, arXiv 2601.05724",
    claims=(*_identity(), *_released_code(), *_measured()),
    contradictions=(
        Contradiction("Table 1 gives HSD 2 to 7 % more tokens a pass than block verification, "
                      "though both are lossless.", _excess),
        Contradiction("The released code departs from the lossless algorithm 2.", _lossy)))
