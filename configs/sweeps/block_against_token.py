"""Block verification against token verification (Sun et al. 2025, arXiv 2403.10444).

    python -m experiments.sweep --config=configs/sweeps/block_against_token.py --out=runs/block

MEASURE
Block verification never accepts less in expectation, and the gap grows with gamma.
"""

from configs import table


def get_config():
  config = table.get_config()
  config.sweep = dict(
      prompts=("mini",), rule=("token", "block"), gamma=(1, 2, 4, 8), temperature=(0.6, 1.0))
  return config
