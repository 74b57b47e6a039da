"""Gumbel coupling against maximal coupling (Daliri et al. 2024, arXiv 2408.07978).

    python -m experiments.sweep --config=configs/sweeps/gumbel_against_token.py --noapply_chat_template --out=runs/gumbel

A minute on two CPU cores for 16 cells of 21 answers. At temperature 1 expect alpha 0.55 for gumbel
and 0.60 for token with gamma 1, and all texts of gumbel identical to plain decoding. But for
the noise of different texts, the alpha of gumbel stays below that of token, the largest that any
rule can have, and above the bound (1 - TV) / (1 + TV).
"""

from configs import table


def get_config():
  config = table.get_config()
  config.sweep = dict(
      prompts=("mini",), rule=("token", "gumbel"), gamma=(1, 4), temperature=(0.3, 0.6, 1.0, 1.5))
  return config
