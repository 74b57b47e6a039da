"""Lenience: what a text that may differ from the target's buys (Leviathan et al. 2023).

    python -m experiments.sweep --config=configs/sweeps/lenience.py --out=runs/lenience

MEASURE
A factor of 1 is lossless; smaller ones accept more and give another text.
"""

from configs import table


def get_config():
  config = table.get_config()
  config.sweep = dict(
      prompts=("mini",), rule=("lenient:1", "lenient:0.7", "lenient:0.5", "lenient:0.2"), gamma=(2, 4))
  return config
