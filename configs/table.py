"""Two Markov tables over characters: target and drafter whose every law is known.

    python -m experiments.decode --config=configs/table.py --prompts=chat --noapply_chat_template

Half a minute on two CPU cores, nearly all of it compilation; nothing is downloaded. The target looks
two characters back, the drafter one. Speculation is slower here, since a table look-up costs nothing:
this is for looking at acceptance, rules and texts.
"""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
  return config_dict.ConfigDict(dict(
      target="table:2",
      drafter="table:1",
      rule="block",
      gamma=4,
      tree="",
      temperature=1.0,
      top_k=0,
      top_p=1.0,
      min_p=0.0,
      max_new_tokens=128,
      batch_size=1,
      strict=False,
      dtype="float32",
  ))
