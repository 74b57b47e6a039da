"""Seed-exact sampling: at temperature 0.7 the text is that of plain decoding, bit for bit.

    python -m experiments.decode --config=configs/smollm2_coupled.py --prompts=extraction

A minute on two CPU cores; expect tau 2.01, alpha 0.75, a speed-up of 1.9 over plain decoding in
strict mode, and identical texts. Gumbel coupling makes the text a function of the seed and the
target; strict mode makes that hold for the bits, at the price of a pass of 8 rows for every token
of plain decoding.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.rule = "gumbel"
  config.gamma = 7
  config.temperature = 0.7
  config.strict = True
  return config
