"""What is decoded side by side with transformers and llama.cpp: the default model, greedily.

    python -m experiments.bench --config=configs/bench.py --peer_python=PATH/bin/python

About 15 minutes on 2 cores with both peers. Expected there: plain decoding at 2.3 times
transformers and 0.8 to 0.9 times llama.cpp, a pass over 4 rows at 1.3 and over 8 at 1.6 passes over
one. Drafts have 7 tokens because a CPU scores 8 rows in the time of 5; the drafters are those of
--drafter.
"""

from configs import smollm2


def get_config():
  config = smollm2.get_config()
  config.gamma = 7
  config.max_new_tokens = 64
  return config
