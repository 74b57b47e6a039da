"""Two Markov tables over characters: target and drafter whose every law is known.

    python -m experiments.decode --config=configs/table.py --prompts=chat --noapply_chat_template

Ten seconds on two CPU cores; expect tau 2.47 and alpha 0.66. The target looks two characters back,
the drafter one; nothing is downloaded. A table look-up costs nothing, so plain decoding is faster
here: this is for looking at acceptance, rules and texts.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.target = "table:2"
  config.drafter = "table:1"
  config.rule = "block"
  config.temperature = 1.0
  return config
