"""Chen, May, Svirschevski, Huang, Ryabinin, Jia, Chen, Sequoia."""

from experiments.papers import toys, weights
from experiments.papers.claim import Claim, derived, needs_weights, Paper
from specjax import theory, verify

_WIDE, _NARROW = (0.6, 0.2, 0.08, 0.04), (0.8, 0.1)
_TRIPLE = (toys.P3, toys.R3, toys.S3)

_MEASURED = (  # setting, tokens a pass, speed
    ("A100, Llama2-7B with 68M, C4, T = 0, tree of 128 and depth 10", 5.08, 4.04),
    ("A100, Llama2-7B with 68M, C4, T = 0.6", 3.92, 3.18),
    ("L40 with offloading, Llama3-70B", 11.68, 9.5))


def _programme():
  yield derived("algorithm 1", "T_max of 1 .. 8 nodes, P = (.6, .2, .08, .04)",
                (1, 1.6, 1.96, 2.176, 2.376, 2.5056, 2.6256, 2.7456),
                lambda: theory.tree_value(_WIDE, 8), 1e-9)
  yield derived("algorithm 1", "T_max of 16 nodes, same P", 3.262,
                lambda: theory.tree_value(_WIDE, 16)[-1], 0.0005)
  yield derived("algorithm 1", "T_max of 1 .. 8 nodes, P = (.8, .1)",
                (1, 1.8, 2.44, 2.952, 3.3616, 3.6893, 3.9514, 4.1611),
                lambda: theory.tree_value(_NARROW, 8), 5e-5)
  yield derived("algorithm 1", "T_max of 12 and 16 nodes, same P", (4.6705, 4.9851),
                lambda: theory.tree_value(_NARROW, 16)[[11, 15]], 5e-5)
  yield derived("comparison with a chain", "12 nodes in one chain, alpha = 0.8", 4.6564,
                lambda: theory.expected_tokens(0.8, 11), 5e-5)
  yield Claim("limits", "value 1 / (1 - P1) of one long chain, P1 = 0.8", 5.0,
              lambda: theory.tree_value((0.8,), 200)[-1], 1e-9)


def _counterexamples():
  at = "p = (1, 0), q = (1/2, 1/2), 2 drafts"
  for method, rule, kind, value in (
      ("SpecInfer", verify.specinfer, toys.IID, 0.75), ("SpecTr", verify.kseq, toys.IID, 0.75),
      ("Sequoia, without replacement", verify.recursive, toys.WITHOUT, 1.0)):
    yield Claim("appendix F.3", f"acceptance of {method}, {at}", value,
                lambda rule=rule, kind=kind: toys.hit(rule, toys.SURE, 2, kind))
  yield Claim("appendix F.3", "acceptance of the top-1 draft, naive sampling, p = q = (.6, .4)",
              0.6, lambda: toys.hit_by(verify.match, (0,), (0.6, 0.4)))


def _properties():
  own = lambda laws, number: toys.hit(verify.recursive, laws, number, toys.WITHOUT)
  yield derived("theorem 3.7", "optimal transport: acceptance of one draft less 1 - TV, P3, R3, S3",
                (0, 0, 0), lambda: [own(laws, 1) - toys.overlap(laws) for laws in _TRIPLE])
  yield derived("theorem 3.7", "cover: acceptance of all three tokens as drafts, P3, R3, S3",
                (1, 1, 1), lambda: [own(laws, 3) for laws in _TRIPLE])
  yield derived("theorem 3.7", "SpecTr and SpecInfer do not cover; ours: rejection of 3 drafts, R3",
                (1, 1), lambda: [1 - toys.hit(rule, toys.R3, 3)
                                 for rule in (verify.kseq, verify.specinfer)],
                direction=True, note="1 stands for any positive probability")


def _measured():
  command = weights.sweep("LLAMA2_7B", "LLAMA_68M", "recursive", 10, "0,0.6", "C4.jsonl")
  for setting, tokens, speed in _MEASURED:
    yield needs_weights(
        "experiments", f"tokens a pass and speed, {setting}", (tokens, speed), command)


PAPER = Paper(
    name="chen2024",
    title="Sequoia: Scalable and Robust Speculative Decoding, NeurIPS 2024, arXiv 2402.12374",
    claims=(*_programme(), *_counterexamples(), *_properties(), *_measured()))
