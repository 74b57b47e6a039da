"""The default model, drafted for by its own first layers.

    python -m experiments.decode --config=configs/smollm2_layer_skip.py --prompts=extraction

A minute and a half on two CPU cores; expect tau 1.22, alpha 0.19 and a speed-up of 0.4. SmolLM2 was
not trained to exit early, so two thirds of its layers guess badly and cost nearly a whole pass; a
model that was (LayerSkip, Elhoushi et al. 2024) is drafted for by the same configuration.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.drafter = "layer_skip:20"
  config.gamma = 2
  return config
