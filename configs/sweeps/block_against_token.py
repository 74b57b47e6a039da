"""Block verification against token verification (Sun et al. 2025, arXiv 2403.10444).

    python -m experiments.sweep --config=configs/sweeps/block_against_token.py --noapply_chat_template --out=runs/block

A minute on two CPU cores for 16 cells of 21 answers. At temperature 1 expect tau 2.45 for block and
2.32 for token with gamma 4, 2.55 and 2.50 with gamma 8; with gamma 1 the two are one rule. Block
verification never accepts less in expectation. A pass of a table takes microseconds, so the report
has no speed-ups.
"""

from configs import table


def get_config():
  config = table.get_config()
  config.sweep = dict(
      prompts=("mini",), rule=("token", "block"), gamma=(1, 2, 4, 8), temperature=(0.6, 1.0))
  return config
