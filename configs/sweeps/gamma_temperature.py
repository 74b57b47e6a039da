"""How many tokens to draft, greedily and when sampling: the default model, prompt lookup.

    python -m experiments.sweep --config=configs/sweeps/gamma_temperature.py --out=runs/gamma

Twelve cells of five prompts, each decoded both ways. Each gamma compiles once, whatever the
temperature. A flag replaces an axis: --gamma=2,3,4.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.sweep = dict(
      prompts=("extraction",), gamma=(1, 2, 4, 8), temperature=(0.0, 0.6, 1.0))
  return config
