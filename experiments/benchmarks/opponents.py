"""The peers that decode beside us: started, given our weights, and asked for what we measure."""

import contextlib
import os
import pathlib
import tempfile
from typing import NamedTuple

from experiments.benchmarks import contest, export, peers
from experiments.benchmarks.decoders import Bench
from specjax import loading

COUNTERPARTS = ("ngram", "layer_skip")  # the drafters by name that transformers has too
_NGRAM = 3  # tokens that prompt lookup matches at most, here and there


class Opponents(NamedTuple):
  """Who takes part beside us."""

  contestants: dict[str, contest.Contestant]
  versions: dict[str, str]  # of their packages
  skipped: dict[str, str]  # peer -> why it is missing


def start(bench: Bench, python: str, stack: contextlib.ExitStack) -> Opponents:
  """Starts every peer that `python` has; `stack` ends their processes."""
  config, model = bench.config, bench.setup.model
  folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specjax-bench-")))
  context = max(map(len, bench.prompts)) + config.max_new_tokens
  found = Opponents({}, {}, {})

  def write_hugging_face():
    export.hugging_face(model, folder)

  def write_gguf():
    export.gguf_file(model, folder / "model.gguf")

  for name, write in (("transformers", write_hugging_face), ("llama.cpp", write_gguf)):
    try:
      peer = stack.enter_context(peers.Peer(
          name, python, folder, threads(), context, model.tokenizer.eos_ids))
    except peers.Missing as error:
      found.skipped[name] = (
          f"{error} (pip install '.[peers]', or name its Python with --peer_python)")
      continue
    write()
    found.versions.update(peer.versions)
    found.contestants[f"{name} plain"] = contest.theirs(peer, {}, config.max_new_tokens)
    if name == "transformers":
      found.contestants.update(_drafting(bench, peer, folder))
  return found


def threads() -> int:
  """Cores that this process may use, which is what XLA takes; peers are told the same number."""
  return len(os.sched_getaffinity(0))


def mode_of(spec: str, gamma: int, layers: int, assistant: pathlib.Path | None) -> tuple[str, dict]:
  """How transformers names and runs a drafter of ours.

  Args:
    spec: the drafter's name, as in a configuration.
    gamma: tokens drafted a round.
    layers: of the target.
    assistant: where a second model has been written, if `spec` is one.
  """
  name, _, number = spec.partition(":")
  if name == "ngram":
    return "transformers prompt lookup", dict(
        prompt_lookup_num_tokens=gamma, max_matching_ngram_size=_NGRAM)
  if name == "layer_skip":
    return "transformers early exit", dict(
        gamma=gamma, assistant_early_exit=int(number) if number else layers // 2 or 1)
  return "transformers assisted", dict(gamma=gamma, assistant=str(assistant))


def _drafting(
    bench: Bench, peer: peers.Peer, folder: pathlib.Path) -> dict[str, contest.Contestant]:
  """The drafters of transformers that correspond to ours."""
  found = {}
  for spec in bench.drafters:
    second = None
    if pathlib.Path(spec).exists():
      second = folder / "assistant"
      second.mkdir(exist_ok=True)
      export.hugging_face(loading.load(spec), second)
    elif spec.partition(":")[0] not in COUNTERPARTS:
      continue
    name, mode = mode_of(spec, bench.config.gamma, bench.setup.model.config.num_layers, second)
    found[name] = contest.theirs(peer, mode, bench.config.max_new_tokens)
  return found
