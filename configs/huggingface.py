"""Models of your own: Hugging Face directories of a target and a drafter with one vocabulary.

    python -m experiments.decode --config=configs/huggingface.py --config.target=DIR --config.drafter=DIR --prompts=mini

The time and the speed-up are those of your models; `speed-up` and `predicted` should agree within a
tenth. --config.drafter=ngram needs no second model.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.target = "DIRECTORY"  # config.json, safetensors, tokenizer.json; or a GGUF file
  config.drafter = "DIRECTORY"
  config.temperature = 0.7
  return config
