"""Decodes prompts speculatively and plainly, side by side.

    python -m experiments.decode --config=configs/smollm2.py --config.gamma=4 --prompt='...'
    python -m experiments.decode --config.temperature=0.7 --prompts=extraction --json --out=DIR
    python -m experiments.decode --replay=DIR/decode.json
"""

import sys

from absl import flags
import tqdm

from specjax import keys
from specjax.launch import (
    app, build, config as config_lib, costs, divergence, play, prompts, record, replay, summary,
    watch)

_CONFIG = config_lib.define()
_PROMPT = flags.DEFINE_string("prompt", None, "one prompt; its text is streamed")
_PROMPTS = flags.DEFINE_string(
    "prompts", None, "a JSONL file with `turns` (Spec-Bench) or `prompt` in each line, or the name "
    f"of a set: {', '.join(prompts.BUILT_IN)}, humaneval")
_TEMPLATE = flags.DEFINE_bool("apply_chat_template", True, "use the model's chat format")
_STOP = flags.DEFINE_multi_string("stop", [], "a text that ends an answer; may be repeated")
_REPLAY = flags.DEFINE_string(
    "replay", None, "the JSON of an earlier run: decode the same again and compare every token")
_REPEATS = 3  # measurements where there is one prompt alone


def main(_):
  recorded = replay.load(_REPLAY.value) if _REPLAY.value is not None else None
  job = recorded.job if recorded else _job()
  setup = build.build(job.config)
  result = _decode(setup, job)
  print("\n" + summary.table(result, job.config.gamma))
  if recorded:
    result["replay"] = replay.compare(recorded, result["tokens"], result["manifest"])
    print("\n" + replay.describe(result["replay"]))
  app.emit("decode", result)
  if recorded and not result["replay"]["identical"]:
    sys.exit(1)


def _job():
  if (_PROMPT.value is None) == (_PROMPTS.value is None):
    raise ValueError("give either --prompt='...' or --prompts=FILE.jsonl or the name of a set")
  alone = _PROMPT.value is not None
  conversations = [prompts.single(_PROMPT.value)] if alone else prompts.load(_PROMPTS.value)
  return replay.Job(
      config_lib.read(_CONFIG), app.SEED.value, conversations, _TEMPLATE.value, _STOP.value)


def _decode(setup, job):
  config, key = job.config, keys.from_seed(job.seed)
  for conversation in job.conversations:  # a prompt that does not fit should not cost an hour first
    play.encode(setup, conversation, [], job.template)
  turns = sum(len(conversation.turns) for conversation in job.conversations)
  if turns == 1:
    prompt = play.encode(setup, job.conversations[0], [], job.template)
    watch.watch(setup, key, prompt, config.max_new_tokens, stop=job.stop)
  with tqdm.tqdm(total=turns, unit="prompt", file=sys.stderr, disable=turns == 1) as bar:
    answers = play.play(
        setup, job.conversations, key, max_new_tokens=config.max_new_tokens,
        batch_size=config.batch_size, template=job.template, stop=job.stop,
        repeats=_REPEATS if turns == 1 else 1, progress=bar.update)
  exact = config.temperature == 0 or setup.speculative.rule.coupled
  # Where nothing is drafted for the whole batch, one row is scored: see `summarise`.
  abstains = setup.speculative.drafter.abstains and config.batch_size == 1 and not config.strict
  result = summary.summarise(answers, _costs(setup, answers), config.gamma, exact, abstains)
  if exact:
    result["divergences"] = [d for a in answers if (d := divergence.first(setup, a))]
  return result | dict(
      inputs=job.inputs(), manifest=record.manifest(job.seed, config, setup.models))


def _costs(setup, answers):
  if setup.speculative.drafter.nodes == 0:
    return None
  padded, lengths = play.pad([answers[0].prompt])
  state = setup.speculative.init(setup.params, padded, lengths)
  return costs.measure(setup.speculative, setup.params, state)


if __name__ == "__main__":
  app.run(main)
