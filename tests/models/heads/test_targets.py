"""The hidden states of the target, which every drafter here reads."""

import jax.numpy as jnp
import numpy as np
import pytest

from specjax.models import transformer
from tests.models.heads import goldens


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_hidden_states_are_counted_as_hugging_face_does(name):
  config, params = goldens.target(name)
  want = goldens.expected(f"target_{name}")
  model = transformer.target(config, tuple(range(config.num_layers + 1)))
  output = model.forward(
      params, model.init(params, 1, 32), goldens.row(want["input_ids"]), jnp.zeros(1, jnp.int32),
      None, None)
  np.testing.assert_allclose(output.logits[0], want["logits"], **goldens.TOLERANCE)
  states = np.moveaxis(np.asarray(output.features[0]), 1, 0)
  np.testing.assert_allclose(states, want["hidden_states"], **goldens.TOLERANCE)
