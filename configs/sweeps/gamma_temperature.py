"""How many tokens to draft, greedily and when sampling: the default model, prompt lookup.

    python -m experiments.sweep --config=configs/sweeps/gamma_temperature.py --out=runs/gamma

Twelve cells of five prompts, each decoded both ways. Each gamma compiles once, whatever the
temperature. A flag replaces an axis: --gamma=2,3,4.
"""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
  return config_dict.ConfigDict(dict(
      target="",  # the default model; or a GGUF file, or a Hugging Face directory
      drafter="ngram",  # ngram, layer_skip:LAYERS, or the path of a model
      rule="token",
      gamma=4,
      tree="",  # a chain
      temperature=0.0,
      top_k=0,  # off
      top_p=1.0,  # off
      min_p=0.0,  # off
      max_new_tokens=128,
      batch_size=1,
      strict=False,
      dtype="float32",
      sweep=dict(
          prompts=("extraction",),
          gamma=(1, 2, 4, 8),
          temperature=(0.0, 0.6, 1.0),
      ),
  ))
