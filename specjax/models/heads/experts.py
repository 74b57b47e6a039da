"""A mixture of experts in place of the feed-forward part: Qwen3-Next's and DeepSeek-V3's."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

from specjax.models.heads import parts
from specjax.models.layers import product
from specjax.types import Array


@dataclasses.dataclass(frozen=True)
class ExpertsConfig:
  """How tokens are routed, and to what.

  DeepSeek-V3 (arXiv 2412.19437) scores by a sigmoid, adds a learned correction for the choice
  alone, and chooses within the best groups; Qwen3-Next scores by a softmax and gates its shared
  expert.
  """

  experts: int
  chosen: int  # experts of a token
  size: int  # of an expert
  shared_size: int  # of the expert that every token takes
  sigmoid: bool = False  # scores are sigmoids of their own, else one softmax
  corrected: bool = False  # the choice, not the weight, adds a correction to the score
  groups: int = 1
  chosen_groups: int = 1
  normalised: bool = True  # the weights of the chosen sum to `scale`
  scale: float = 1.0
  gates_shared: bool = False  # a sigmoid of the token scales the shared expert


class Experts(nn.Module):
  """Columns [H, N] to [H, N].

  Every expert computes every column, weighted by zero where it was not chosen: right for the few
  experts and tokens that a test has, and wasteful for hundreds of experts.
  """

  hidden: int
  config: ExpertsConfig
  dtype: str

  @nn.compact
  def __call__(self, x: Array) -> Array:
    c = self.config
    router = self.param("router", parts.matrix, (c.experts, self.hidden), self.dtype)
    weights = self._weights(product(router, x)).astype(x.dtype)
    up = self.param("gate_up", parts.matrix, (c.experts, 2 * c.size, self.hidden), self.dtype)
    down = self.param("down", parts.matrix, (c.experts, self.hidden, c.size), self.dtype)
    gate, up = jnp.split(jnp.einsum("emh,hn->emn", up, x), 2, axis=1)
    active = nn.silu(gate) * up * weights[:, None]
    shared = parts.Mlp(self.hidden, c.shared_size, self.dtype, name="shared")(x)
    if c.gates_shared:
      shared *= nn.sigmoid(parts.Linear(self.hidden, 1, self.dtype, name="shared_gate")(x))
    return jnp.einsum("ehm,emn->hn", down, active) + shared

  def _weights(self, scores: Array) -> Array:
    """float32[E, N]: the weight of each expert for each column, 0 for those not chosen."""
    c = self.config
    scores = nn.sigmoid(scores) if c.sigmoid else jax.nn.softmax(scores, axis=0)
    choice = scores
    if c.corrected:
      correction = self.param("correction", nn.initializers.zeros, (c.experts,), self.dtype)
      choice += correction.astype(scores.dtype)[:, None]
    choice = jnp.where(self._allowed(choice), choice, -jnp.inf)
    weights = jnp.where(_among_best(choice, c.chosen), scores, 0)
    if c.normalised:
      weights /= weights.sum(0, keepdims=True) + 1e-20  # the authors' guard
    return c.scale * weights

  def _allowed(self, choice: Array) -> Array:
    """bool[E, N]: the experts of the best groups, by the sum of each group's two best."""
    c = self.config
    if c.groups == 1:
      return jnp.ones(choice.shape, bool)
    grouped = choice.reshape(c.groups, -1, choice.shape[1])
    two_best = lax.top_k(jnp.moveaxis(grouped, 1, -1), 2)[0].sum(-1)
    kept = _among_best(two_best, c.chosen_groups)[:, None]
    return jnp.broadcast_to(kept, grouped.shape).reshape(choice.shape)


def _among_best(scores: Array, count: int) -> Array:
  """bool[E, N]: the `count` highest of each column, the first among equals."""
  chosen = lax.top_k(scores.T, count)[1]
  return jax.nn.one_hot(chosen, scores.shape[0], dtype=jnp.int32).sum(1).T > 0
