"""Lenience: what a text that may differ from the target's buys (Leviathan et al. 2023).

    python -m experiments.sweep --config=configs/sweeps/lenience.py --noapply_chat_template --out=runs/lenience

A minute on two CPU cores for 8 cells of 21 answers. With gamma 4 expect tau 2.32, 2.70, 2.98 and
3.66 as the factor falls from 1 to 0.2. A factor of 1 is lossless; smaller ones accept more and give
another text.
"""

from configs import table


def get_config():
  config = table.get_config()
  config.sweep = dict(
      prompts=("mini",), rule=("lenient:1", "lenient:0.7", "lenient:0.5", "lenient:0.2"),
      gamma=(2, 4))
  return config
