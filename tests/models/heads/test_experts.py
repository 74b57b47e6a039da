"""Which experts a token takes, against a plain loop."""

import jax.numpy as jnp
import numpy as np
import pytest

from specjax.models.heads.experts import Experts, ExpertsConfig

HIDDEN = 6


def weights(config, scores, correction):
  """The weights [E] of one token, from its scores [E] before sigmoid or softmax."""
  scores = 1 / (1 + np.exp(-scores)) if config.sigmoid else np.exp(scores) / np.exp(scores).sum()
  choice = scores + correction
  groups = np.split(np.arange(config.experts), config.groups)
  best = sorted(groups, key=lambda g: -np.sort(choice[g])[-2:].sum())[:config.chosen_groups]
  allowed = sorted(np.concatenate(best), key=lambda e: -choice[e])[:config.chosen]
  weights = np.zeros(config.experts)
  weights[allowed] = scores[allowed]
  return config.scale * (weights / weights.sum() if config.normalised else weights)


@pytest.mark.parametrize("changes", [
    {}, dict(normalised=False), dict(sigmoid=True, scale=2.5), dict(gates_shared=True),
    dict(sigmoid=True, corrected=True),
    dict(sigmoid=True, corrected=True, groups=4, chosen_groups=2, chosen=3)])
def test_every_token_takes_its_own_experts(changes):
  config = ExpertsConfig(**(dict(experts=8, chosen=2, size=5, shared_size=4) | changes))
  rng = np.random.default_rng(3)
  draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
  params = {
      "router": draw(8, HIDDEN), "gate_up": draw(8, 10, HIDDEN), "down": draw(8, HIDDEN, 5),
      "shared": {"gate_up": {"weights": draw(8, HIDDEN)}, "down": {"weights": draw(HIDDEN, 4)}},
      "shared_gate": {"weights": draw(1, HIDDEN)},
      # So far below zero that a group left out would win if it counted as zero.
      "correction": draw(8) - 4 if config.corrected else np.zeros(8, np.float32)}
  x = draw(HIDDEN, 7)
  got = Experts(HIDDEN, config, "float32").apply({"params": params}, jnp.asarray(x))

  silu = lambda x: x / (1 + np.exp(-x))
  mlp = lambda up, down, x: down @ (silu(up[:len(up) // 2] @ x) * (up[len(up) // 2:] @ x))
  for column, result in zip(x.T, np.asarray(got).T):
    chosen = weights(config, params["router"] @ column, params["correction"])
    routed = [mlp(up, down, column) for up, down in zip(params["gate_up"], params["down"])]
    shared = mlp(*(params["shared"][x]["weights"] for x in ("gate_up", "down")), column)
    gate = 1 / (1 + np.exp(-params["shared_gate"]["weights"] @ column))
    shared = shared * gate if config.gates_shared else shared
    np.testing.assert_allclose(result, chosen @ np.stack(routed) + shared, rtol=0, atol=2e-5)
