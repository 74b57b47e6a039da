"""How many tokens to draft, greedily and when sampling: the default model, prompt lookup.

    python -m experiments.sweep --config=configs/sweeps/gamma_temperature.py --out=runs/gamma

Six minutes on two CPU cores for twelve cells of five answers, each decoded both ways. Expect tau
1.71, 2.25, 3.02 and 3.83 at temperature 0, speed-ups of 1.3 to 1.9 there, and next to none at
temperature 1. A flag replaces an axis: --gamma=2,3,4.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.sweep = dict(
      prompts=("extraction",), gamma=(1, 2, 4, 8), temperature=(0.0, 0.6, 1.0))
  return config
