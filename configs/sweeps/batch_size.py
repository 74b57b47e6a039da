"""Where speculation stops paying: throughput and speed-up against the batch size.

    python -m experiments.sweep --config=configs/sweeps/batch_size.py --out=runs/batch

Six minutes on two CPU cores for five cells of 21 answers. Expect speed-ups of 1.3, 1.1, 0.9, 0.7
and 0.5 for 1, 2, 4, 8 and 16 rows: a larger batch leaves fewer rows of a pass free, and waits for
the slowest of its rows.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.max_new_tokens = 64
  config.sweep = dict(prompts=("mini",), batch_size=(1, 2, 4, 8, 16))
  return config
