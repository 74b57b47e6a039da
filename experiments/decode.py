"""Decodes prompts speculatively and plainly, side by side.

    python -m experiments.decode --config=configs/smollm2.py --config.gamma=4 --prompt='...'
    python -m experiments.decode --config.temperature=0.7 --prompts=extraction --json --out=DIR
    python -m experiments.decode --config.gamma=auto --prompts=extraction
    python -m experiments.decode --replay=DIR/decode.json
"""

import functools
import sys

import tqdm
from absl import flags

from specjax import keys
from specjax.launch import app, build, config as config_lib, dialogue, prompts, summary, watch
from specjax.measure import auto, job as jobs, replay
from specjax.types import Error

_CONFIG = config_lib.define()
_PROMPT = flags.DEFINE_string("prompt", None, "one prompt; its text is streamed")
_PROMPTS = flags.DEFINE_string(
    "prompts", None, "a JSONL file with `turns` (Spec-Bench) or `prompt` in each line, or the name "
    f"of a set: {', '.join(prompts.SETS)}")
_TEMPLATE = flags.DEFINE_bool("apply_chat_template", True, "use the model's chat format")
_STOP = flags.DEFINE_multi_string("stop", [], "a text that ends an answer; may be repeated")
_REPLAY = flags.DEFINE_string(
    "replay", None, "the JSON of an earlier run: decode the same again and compare every token")
_RECORDED = ("prompt", "prompts", "seed", "apply_chat_template", "stop")  # a replay has its own


def main(_):
  recorded = _recorded() if _REPLAY.value is not None else None
  load = functools.cache(build.load_model)
  job, choice = auto.resolve(recorded.job if recorded else _job(), load)
  if choice:
    print(auto.describe(choice) + "\n", flush=True)
  setup = build.build(job.config, load)
  result = _decode(setup, job)
  print("\n" + summary.table(result))
  written = jobs.to_json(setup, job, result)
  if choice:
    written["choice"] = choice
  if recorded:
    written["replay"] = replay.compare(recorded, result.tokens, written["manifest"])
    print("\n" + replay.describe(written["replay"]))
  app.emit("decode", written)
  if recorded and not written["replay"]["identical"]:
    sys.exit(1)


def _recorded():
  given = config_lib.given() + [name for name in _RECORDED if flags.FLAGS[name].present]
  if given:
    raise Error(
        f"--replay={_REPLAY.value} takes configuration, prompts and seed from the record, so "
        f"{', '.join(f'--{name}' for name in given)} would change nothing: leave it out")
  return replay.load(_REPLAY.value)


def _job():
  if (_PROMPT.value is None) == (_PROMPTS.value is None):
    raise Error("give either --prompt='...' or --prompts=FILE.jsonl or the name of a set")
  alone = _PROMPT.value is not None
  conversations = [prompts.single(_PROMPT.value)] if alone else prompts.load(_PROMPTS.value)
  return jobs.Job(
      config_lib.read(_CONFIG), app.SEED.value, conversations, _TEMPLATE.value, _STOP.value)


def _decode(setup, job):
  jobs.check(setup, job)
  if job.turns == 1:
    prompt = dialogue.encode(setup, job.conversations[0], [], job.template)
    watch.watch(
        setup, keys.from_seed(job.seed), prompt, job.config.max_new_tokens, stop=job.stop)
  with tqdm.tqdm(total=job.turns, unit="prompt", file=sys.stderr, disable=job.turns == 1) as bar:
    return jobs.measure(setup, job, bar.update)


if __name__ == "__main__":
  app.run(main)
