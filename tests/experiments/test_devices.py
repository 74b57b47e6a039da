"""Two processes, and one or four devices, give the same tokens."""

import json
import pathlib

import pytest

from tests.launch import forked

TINY = pathlib.Path(__file__).parents[1] / "loading" / "goldens" / "llama"
COMMAND = [
    "experiments.decode", f"--config.target={TINY}", "--config.drafter=layer_skip:1",
    "--config.max_new_tokens=24", "--prompt=the cat the cat", "--noapply_chat_template", "--json"]
WAYS = {
    "greedy": ["--config.strict"],
    "coupled": ["--config.rule=gumbel", "--config.temperature=1", "--config.strict"],
    "coins": ["--config.rule=block", "--config.temperature=1"],
}


def results(devices: int) -> dict[str, dict]:
  ran = forked.run(
      [[*COMMAND, *flags] for flags in WAYS.values()],
      XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}")
  assert [code for code, _, _ in ran] == [0] * len(ran), ran
  return dict(zip(WAYS, (json.loads(out.splitlines()[-1]) for _, out, _ in ran)))


@pytest.fixture(scope="module")
def outcomes():
  return [results(1), results(1), results(4)]


@pytest.mark.parametrize("way", WAYS)
def test_the_tokens_are_the_same(outcomes, way):
  first, again, wider = (outcome[way] for outcome in outcomes)
  assert first["tokens"] == again["tokens"] == wider["tokens"] and len(first["tokens"][0]) > 8
  assert first["manifest"]["device"]["count"] == 1 and wider["manifest"]["device"]["count"] == 4
