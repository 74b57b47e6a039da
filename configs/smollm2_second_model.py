"""A second model as the drafter: the default model drafts for itself.

    python -m experiments.decode --config=configs/smollm2_second_model.py --prompts=extraction

A minute and a half on two CPU cores. A control, not a speed-up: target and drafter have one law, so
every token is accepted; expect alpha 1, tau 4.92 (5 but for the ends of the texts) and a speed-up
of 0.8. For a real pair, name a larger model with the vocabulary of SmolLM2:
--config.target=DIRECTORY_OF_SmolLM2-1.7B-Instruct.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.drafter = "smollm2"
  return config
