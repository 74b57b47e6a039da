"""Where speculation stops paying: throughput and speed-up against the batch size.

    python -m experiments.sweep --config=configs/sweeps/batch_size.py --out=runs/batch

MEASURE
A larger batch leaves fewer rows of a pass free, and waits for the slowest of its rows.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.max_new_tokens = 64
  config.sweep = dict(prompts=("mini",), batch_size=(1, 2, 4, 8, 16))
  return config
