"""The decoders that are compared, and the prompts that all of them answer."""

import dataclasses
import functools
from typing import Sequence

from experiments.benchmarks import contest
from specjax import decode, logits, verify
from specjax.launch import build as build_lib, dialogue, prompts as prompts_lib, registry
from specjax.launch.config import DecodeConfig
from specjax.types import Error, Params

_COUPLED_TEMPERATURE = 0.7
COUPLED = f"gumbel, T = {_COUPLED_TEMPERATURE}"


@dataclasses.dataclass(frozen=True)
class Bench:
  """What the sections that decode share."""

  config: DecodeConfig
  setup: build_lib.Setup
  drafters: list[str]  # as config.drafter names them
  decoders: dict[str, tuple[decode.Decoder, Params]]  # by name; plain decoding, then the drafters
  conversations: list[prompts_lib.Conversation]
  prompts: list[list[int]]

  @property
  def is_default(self) -> bool:
    return self.config.target == ""


def build(config: DecodeConfig, drafters: list[str], prompt_sets: Sequence[str]) -> Bench:
  """Loads the target and puts a decoder together for plain decoding and for every drafter.

  Args:
    config: greedy, one prompt at a time, float32.
    drafters: as config.drafter names them, at least one.
    prompt_sets: files or names of sets; the first turns are decoded.

  Raises:
    Error: another configuration, no drafter, no prompts, or a target that is no transformer.
  """
  _refuse_unfair(config, drafters, prompt_sets)
  conversations = [each for name in prompt_sets for each in prompts_lib.load(name)]
  load = functools.partial(build_lib.load_model, dtype=config.dtype)
  setup = build_lib.build(dataclasses.replace(config, drafter=drafters[0]))
  if not setup.model.config.num_layers:
    raise Error(f"bench measures a transformer, and config.target {config.target!r} is none")
  decoders = {contest.PLAIN: (setup.plain, setup.params)}
  for spec in drafters:
    drafter, params, files = registry.drafter(spec, config.gamma, setup.model, load)
    setup.models.update(files)
    decoders[f"specjax {spec}"] = (
        decode.speculative(
            setup.model.target(drafter.captures), drafter, setup.speculative.rule,
            setup.plain.transform),
        Params(setup.model.params, params))
  has_template = setup.model.require_tokenizer().chat_template is not None
  encoded = [dialogue.encode(setup, each, [], has_template) for each in conversations]
  return Bench(config, setup, drafters, decoders, conversations, encoded)


def coupled(bench: Bench) -> tuple[decode.Decoder, Params]:
  """The first drafter under Gumbel coupling, whose noise is drawn for the whole vocabulary."""
  first = list(bench.decoders.values())[1][0]
  warm = logits.temperature(_COUPLED_TEMPERATURE)
  return decode.speculative(first.target, first.drafter, verify.gumbel(), warm), bench.setup.params


def _refuse_unfair(config: DecodeConfig, drafters: Sequence[str], prompt_sets: Sequence[str]):
  if config.temperature or config.batch_size > 1 or config.strict or config.dtype != "float32":
    raise Error(
        "bench compares greedy decoding of one prompt at a time in float32: "
        "config.temperature is 0, config.batch_size 1, config.strict false and "
        "config.dtype float32")
  if config.gamma == 0 or not drafters:
    raise Error("bench drafts: config.gamma is at least 1, and --drafter names a drafter")
  if not prompt_sets:
    raise Error("--prompts is empty: name a set of prompts or a file")
