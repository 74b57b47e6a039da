"""Measures specjax against transformers and llama.cpp, and its own parts against their goals.

    python -m experiments.bench [--section=model,peers,logits,verify] [--json] [--out=DIR]
    python -m experiments.bench --section=peers --prompts=mini --peer_python=PATH/bin/python

Sections: `model`, the cost of wide passes and of what surrounds them; `peers`, decoding side by
side in one run; `logits`, transforms against their sorting version; `verify`, rules against a copy
of the laws they judge. The peers are the extra `peers` of the package (`pip install '.[peers]'`);
what is not installed is left out with a message. They may live in another environment:
--peer_python. Writes bench.md and bench.json into --out. About 15 minutes on two cores.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import sys
import tempfile

import tqdm
from absl import flags

from experiments.benchmarks import contest, export, kernels, passes, peers, tables
from specjax import decode, keys, loading, logits, verify
from specjax.launch import (
  app,
  build,
  config as config_lib,
  dialogue,
  errors,
  prompts,
  record,
  registry,
)
from specjax.types import Error, Params

SECTIONS = ("model", "peers", "logits", "verify")
_COUPLED_TEMPERATURE = 0.7
_COUPLED = f"gumbel, T = {_COUPLED_TEMPERATURE}"
_ROOT = pathlib.Path(__file__).resolve().parents[1]

_CONFIG = config_lib.define(_ROOT / "configs" / "bench.py")
_SECTION = flags.DEFINE_list("section", list(SECTIONS), f"comma-separated: {', '.join(SECTIONS)}")
_DRAFTER = flags.DEFINE_list(
    "drafter", ["ngram", "layer_skip:10"], "drafters of the speculative decoders, comma-separated")
_PROMPTS = flags.DEFINE_list(
    "prompts", ["summarising", "extraction"], "prompt sets as in experiments.decode; first turns")
_REPEATS = flags.DEFINE_integer("repeats", 3, "repetitions of every measurement", lower_bound=1)
_PEER_PYTHON = flags.DEFINE_string(
    "peer_python", sys.executable, "the Python that has transformers and llama-cpp-python")
_RULE = flags.DEFINE_list("rule", ["token", "block"], "rules of the section `verify`")


def main(_):
  _refuse_unknown()
  wanted = [name for name in SECTIONS if name in _SECTION.value]
  result, texts, goals = {}, [], []
  if {"model", "peers"} & set(wanted):
    bench = _decoding()
    result["manifest"] = record.manifest(app.SEED.value, bench.config, bench.setup.models)
  else:
    result["manifest"] = record.manifest(app.SEED.value)
  for name in wanted:
    found, text, reached = {
        "model": lambda: _model(bench), "peers": lambda: _peers(bench), "logits": _logits,
        "verify": _verify}[name]()
    print(text + "\n", flush=True)
    result[name], texts, goals = found, texts + [text], goals + reached
  if goals:
    texts.append(tables.goals(goals))
    print(texts[-1])
  result["goals"] = [dict(goal._asdict(), met=goal.met) for goal in goals]
  if app.OUT.value is not None:
    (pathlib.Path(app.OUT.value) / "bench.md").write_text("\n\n".join(texts) + "\n", "utf-8")
  app.emit("bench", result)


@dataclasses.dataclass(frozen=True)
class Bench:
  """What the sections that decode share."""

  config: config_lib.DecodeConfig
  setup: build.Setup
  decoders: dict[str, tuple[decode.Decoder, Params]]  # by name
  conversations: list[prompts.Conversation]
  prompts: list[list[int]]

  @property
  def is_default(self) -> bool:
    return self.config.target == ""


def _refuse_unknown():
  if not _SECTION.value or not _RULE.value:
    raise Error(f"--section is one or more of {', '.join(SECTIONS)}, and --rule of the rules")
  for name in _SECTION.value:
    if name not in SECTIONS:
      raise Error(f"--section: {name!r} is none{errors.nearest(name, SECTIONS)}")
  for name in _RULE.value:
    registry.rule(name)


def _decoding() -> Bench:
  config = config_lib.read(_CONFIG)
  if config.temperature or config.batch_size > 1 or config.strict or config.dtype != "float32":
    raise Error(
        "bench compares greedy decoding of one prompt at a time in float32: "
        "config.temperature is 0, config.batch_size 1, config.strict false and "
        "config.dtype float32")
  if config.gamma == 0 or not _DRAFTER.value:
    raise Error("bench drafts: config.gamma is at least 1, and --drafter names a drafter")
  if not _PROMPTS.value:
    raise Error("--prompts is empty: name a set of prompts or a file")
  conversations = [each for name in _PROMPTS.value for each in prompts.load(name)]
  load = functools.partial(build.load_model, dtype=config.dtype)
  setup = build.build(dataclasses.replace(config, drafter=_DRAFTER.value[0]))
  if not setup.model.config.num_layers:
    raise Error(f"bench measures a transformer, and config.target {config.target!r} is none")
  decoders = {contest.PLAIN: (setup.plain, setup.params)}
  for spec in _DRAFTER.value:
    drafter, params, files = registry.drafter(spec, config.gamma, setup.model, load)
    setup.models.update(files)
    decoders[f"specjax {spec}"] = (
        decode.speculative(
            setup.model.target(drafter.captures), drafter, setup.speculative.rule,
            setup.plain.transform),
        Params(setup.model.params, params))
  has_template = setup.model.require_tokenizer().chat_template is not None
  encoded = [dialogue.encode(setup, each, [], has_template) for each in conversations]
  return Bench(config, setup, decoders, conversations, encoded)


def _model(bench: Bench):
  longest = max(bench.prompts, key=len)
  decoders = bench.decoders | {_COUPLED: _coupled(bench)}
  found = passes.measure(decoders, keys.from_seed(app.SEED.value), longest, _REPEATS.value * 3)
  goals = []
  if bench.is_default:
    goals = [
        tables.Goal("V(4)", found.relative[4], False, 1.4),
        tables.Goal("V(8)", found.relative[8], False, 1.7)]
    goals += [tables.Goal(f"outside of passes, {name}", each.fraction, False, 0.05)
              for name, each in found.rounds.items() if name != _COUPLED]
    # Without models every token is guessed, so the noise is that of gamma + 1 tokens: more than
    # that of a real round, which emits tau.
    coins, coupled = list(found.rounds.values())[1], found.rounds[_COUPLED]
    noise = (coupled.outside - coins.outside) / coupled.round
    goals.append(tables.Goal("noise of a coupled round", noise, False, 0.1))
  return found, tables.model(found), goals


def _coupled(bench: Bench) -> tuple[decode.Decoder, Params]:
  """The first drafter under Gumbel coupling, whose noise is drawn for the whole vocabulary."""
  first = list(bench.decoders.values())[1][0]
  warm = logits.temperature(_COUPLED_TEMPERATURE)
  return decode.speculative(first.target, first.drafter, verify.gumbel(), warm), bench.setup.params


def _peers(bench: Bench):
  size = bench.config.max_new_tokens
  key = keys.from_seed(app.SEED.value)
  contestants = {
      name: contest.ours(bench.setup, decoder, params, key, size)
      for name, (decoder, params) in bench.decoders.items()}
  with contextlib.ExitStack() as stack:
    others, versions, skipped = _start_peers(bench, stack)
    contestants |= others
    total = len(contestants) * len(bench.prompts) * _REPEATS.value
    with tqdm.tqdm(total=total, unit="text", file=sys.stderr, disable=None) as bar:
      played = contest.play_all(contestants, bench.prompts, _REPEATS.value, bar.update)
  results = contest.judge(bench.setup, bench.conversations, bench.prompts, played)
  found = dict(
      decoders={name: dict(each._asdict(), rate=each.rate) for name, each in results.items()},
      ratios={name: {other: contest.ratio(results, name, other) for other in results}
              for name in results},
      versions=versions, skipped=skipped, threads=_threads(), gamma=bench.config.gamma,
      prompts=[each.name for each in bench.conversations], max_new_tokens=size)
  goals = _goals(results) if bench.is_default else []
  return found, tables.peers(results, skipped, len(bench.prompts)), goals


def _start_peers(bench: Bench, stack: contextlib.ExitStack):
  """The peers' contestants, versions, and why some are missing; `stack` ends their processes."""
  config, model = bench.config, bench.setup.model
  folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specjax-bench-")))
  context = max(map(len, bench.prompts)) + config.max_new_tokens
  contestants, versions, skipped = {}, {}, {}
  for name, write in (
      ("transformers", lambda: export.hugging_face(model, folder)),
      ("llama.cpp", lambda: export.gguf_file(model, folder / "model.gguf"))):
    try:
      peer = stack.enter_context(peers.Peer(
          name, _PEER_PYTHON.value, folder, _threads(), context, model.tokenizer.eos_ids))
    except peers.Missing as error:
      skipped[name] = f"{error} (pip install '.[peers]', or name its Python with --peer_python)"
      continue
    write()
    versions |= peer.versions
    contestants[f"{name} plain"] = contest.theirs(peer, {}, config.max_new_tokens)
    if name == "transformers":
      contestants |= _drafting(bench, peer, folder)
  return contestants, versions, skipped


def _drafting(
    bench: Bench, peer: peers.Peer, folder: pathlib.Path) -> dict[str, contest.Contestant]:
  """The drafters of transformers that correspond to ours."""
  found = {}
  for spec in _DRAFTER.value:
    second = None
    if pathlib.Path(spec).exists():
      second = folder / "assistant"
      second.mkdir(exist_ok=True)
      export.hugging_face(loading.load(spec), second)
    elif spec.partition(":")[0] not in contest.COUNTERPARTS:
      continue
    name, mode = contest.mode_of(
        spec, bench.config.gamma, bench.setup.model.config.num_layers, second)
    found[name] = contest.theirs(peer, mode, bench.config.max_new_tokens)
  return found


def _goals(results: dict[str, contest.Result]) -> list[tables.Goal]:
  wanted = [("transformers plain", 2.0), ("llama.cpp plain", 0.85)]
  goals = [
      tables.Goal(f"{contest.PLAIN} / {name}",
                  contest.ratio(results, contest.PLAIN, name)[0], True, bound)
      for name, bound in wanted if name in results]
  if "specjax ngram" in results:
    goals += [
        tables.Goal(f"specjax ngram / {contest.PLAIN}, {category}",
                    contest.ratio(results, "specjax ngram", contest.PLAIN, category)[0], True, 1)
        for category in ("summarising", "extraction")
        if category in results[contest.PLAIN].category_rates]
  return goals


def _logits():
  found = kernels.transforms(rows=9, vocab=49152, repeats=_REPEATS.value * 3)
  chain = list(found.ratio)[-1]
  return found, tables.logits(found), [
      tables.Goal(f"sorting / ours, {chain}", found.ratio[chain], True, 5)]


def _verify():
  found = kernels.verification(
      _RULE.value, batch=64, gamma=8, vocab=128256, repeats=_REPEATS.value)
  return found, tables.verify(found), [
      tables.Goal(f"verify / copy, {rule}", ratio, False, 3)
      for rule, ratio in found.ratio.items()]


def _threads() -> int:
  """Cores that this process may use, which is what XLA takes; peers are told the same number."""
  return len(os.sched_getaffinity(0))


if __name__ == "__main__":
  app.run(main)
