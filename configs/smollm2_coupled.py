"""Seed-exact sampling: at temperature 0.7 the text is that of plain decoding, bit for bit.

    python -m experiments.decode --config=configs/smollm2_coupled.py --prompts=extraction

MEASURE
Gumbel coupling makes the text a function of the seed and the target; strict mode makes that hold
for the bits, at the price of a pass of 8 rows for every token of plain decoding.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.rule = "gumbel"
  config.gamma = 7
  config.temperature = 0.7
  config.strict = True
  return config
