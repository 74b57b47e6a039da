"""SmolLM2-135M-Instruct (the default model), drafted for by prompt lookup.

    python -m experiments.decode --config=configs/smollm2.py --prompts=extraction

Two minutes on two CPU cores, the first time with one more for compilation; expect tau 3.02 and
alpha 0.87 over the five answers. Prompt lookup copies from the prompt, so it pays where the answer
repeats it (extraction and summarising) and drafts little elsewhere. At temperature 0 the text is
that of plain decoding.
"""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
  return config_dict.ConfigDict(dict(
      target="",  # the default model; or a GGUF file, or a Hugging Face directory
      drafter="ngram",  # ngram, layer_skip:LAYERS, or the path of a model
      rule="token",
      gamma=4,  # or auto: the fastest of 0 to 7 here, by measured costs and a pilot
      stop_below=0.0,  # off
      tree="",  # a chain
      temperature=0.0,
      top_k=0,  # off
      top_p=1.0,  # off
      min_p=0.0,  # off
      max_new_tokens=128,
      batch_size=1,
      strict=False,
      dtype="float32",
  ))
