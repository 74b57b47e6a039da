"""Decodes prompts speculatively and plainly, side by side.

    python -m experiments.decode --config=configs/smollm2.py --config.gamma=4 --prompt='...'
    python -m experiments.decode --config.temperature=0.7 --prompts=extraction --json
"""

import sys

from absl import flags
import tqdm

from specjax import keys
from specjax.launch import (
    app, build, config as config_lib, costs, divergence, play, prompts, record, summary, watch)

_CONFIG = config_lib.define()
_PROMPT = flags.DEFINE_string("prompt", None, "one prompt; its text is streamed")
_PROMPTS = flags.DEFINE_string(
    "prompts", None, "a JSONL file with `turns` (Spec-Bench) or `prompt` in each line, or the name "
    f"of a set: {', '.join(prompts.BUILT_IN)}, humaneval")
_TEMPLATE = flags.DEFINE_bool("apply_chat_template", True, "use the model's chat format")
_REPEATS = 3  # measurements where there is one prompt alone


def main(_):
  config = config_lib.read(_CONFIG)
  conversations = _conversations()
  setup = build.build(config)
  key = keys.from_seed(app.SEED.value)
  for conversation in conversations:  # a prompt that does not fit should not cost an hour first
    play.encode(setup, conversation, [], _TEMPLATE.value)

  alone = len(conversations) == len(conversations[0].turns) == 1
  if alone:
    watch.watch(
        setup, key, play.encode(setup, conversations[0], [], _TEMPLATE.value),
        config.max_new_tokens)
  turns = sum(len(conversation.turns) for conversation in conversations)
  with tqdm.tqdm(total=turns, unit="prompt", file=sys.stderr, disable=alone) as bar:
    answers = play.play(
        setup, conversations, key, max_new_tokens=config.max_new_tokens,
        batch_size=config.batch_size, template=_TEMPLATE.value,
        repeats=_REPEATS if alone else 1, progress=bar.update)

  exact = config.temperature == 0 or setup.speculative.rule.coupled
  # Where nothing is drafted for the whole batch, one row is scored: see `summarise`.
  abstains = setup.speculative.drafter.abstains and config.batch_size == 1 and not config.strict
  result = summary.summarise(answers, _costs(setup, answers), config.gamma, exact, abstains)
  if exact:
    result["divergences"] = [d for a in answers if (d := divergence.first(setup, a))]
  result["manifest"] = record.manifest(app.SEED.value, config, setup.models)
  print("\n" + summary.table(result, config.gamma))
  app.emit("decode", result)


def _conversations():
  if (_PROMPT.value is None) == (_PROMPTS.value is None):
    raise ValueError("give either --prompt='...' or --prompts=FILE.jsonl or the name of a set")
  if _PROMPT.value is not None:
    return [prompts.single(_PROMPT.value)]
  return prompts.load(_PROMPTS.value)


def _costs(setup, answers):
  if setup.speculative.drafter.nodes == 0:
    return None
  padded, lengths = play.pad([answers[0].prompt])
  state = setup.speculative.init(setup.params, padded, lengths)
  return costs.measure(setup.speculative, setup.params, state)


if __name__ == "__main__":
  app.run(main)
