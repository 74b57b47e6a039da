"""A slow decoder in plain numpy and float64: one token, one head, one feature plane at a time.

It shares no formula with the library: rotations are complex numbers, scalings are written
frequency by frequency as `transformers` words them, and there is no cache.
"""

import math

import jax
import numpy as np

from specjax.models.config import ModelConfig


def norm(x, scale, eps):
  return x / math.sqrt(np.mean(x * x) + eps) * scale


def frequency(config: ModelConfig, plane: int) -> float:
  """Radians per token of one plane."""
  plain, s = config.rope_theta ** (-2 * plane / config.head_dim), config.rope_scaling
  if s is None:
    return plain
  original = s.original_length or config.max_length
  if s.kind == "linear":
    return plain / s.factor
  if s.kind == "llama3":
    wavelength = 2 * math.pi / plain
    if wavelength < original / s.high_freq_factor:
      return plain
    if wavelength > original / s.low_freq_factor:
      return plain / s.factor
    smooth = (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
    return (1 - smooth) * plain / s.factor + smooth * plain
  dimension = lambda turns: (config.head_dim * math.log(original / (turns * 2 * math.pi))
                             / (2 * math.log(config.rope_theta)))
  low = max(math.floor(dimension(s.beta_fast)), 0)
  high = min(math.ceil(dimension(s.beta_slow)), config.head_dim - 1)
  if low == high:
    high += 0.001
  ramp = min(max((plane - low) / (high - low), 0), 1)
  return plain / s.factor * ramp + plain * (1 - ramp)


def rotated(config: ModelConfig, head, position):
  """One head float[head_dim] at one position: plane i is head[i] + 1j * head[i + head_dim / 2]."""
  half = config.head_dim // 2
  s, size = config.rope_scaling, 1.0
  if s is not None and s.kind == "yarn":
    size = s.attention_factor
    if size is None:
      size = 0.1 * math.log(s.factor) + 1.0 if s.factor > 1 else 1.0
  turn = np.exp([1j * position * frequency(config, i) for i in range(half)])
  planes = size * turn * (head[:half] + 1j * head[half:])
  return np.concatenate([planes.real, planes.imag])


def attention(config, layer, normed, positions, mask):
  """normed float[T, H] -> float[T, H]; token t sees the tokens u with mask[t, u]."""
  d, heads, kv = config.head_dim, config.num_heads, config.num_kv_heads
  rows = [layer["qkv"] @ x + layer.get("qkv_bias", 0) for x in normed]  # [KV, groups + 2, d]
  q = [[head for group in row for head in group[:-2]] for row in rows]
  k, v = ([[group[which] for group in row] for row in rows] for which in (-2, -1))
  if config.qk_norm:
    q = [[norm(h, layer["q_norm"], config.norm_eps) for h in row] for row in q]
    k = [[norm(h, layer["k_norm"], config.norm_eps) for h in row] for row in k]
  q = [[rotated(config, h, at) for h in row] for row, at in zip(q, positions)]
  k = [[rotated(config, h, at) for h in row] for row, at in zip(k, positions)]
  out = []
  for t in range(len(normed)):
    seen, mixed = [u for u in range(len(normed)) if mask[t, u]], []
    for h in range(heads):
      group = h // (heads // kv)
      scores = np.array([q[t][h] @ k[u][group] / math.sqrt(d) for u in seen])
      weights = np.exp(scores - scores.max())
      mixed.append(sum(w * v[u][group] for w, u in zip(weights / weights.sum(), seen)))
    out.append(layer["out"] @ np.concatenate(mixed) + layer.get("out_bias", 0))
  return np.stack(out)


def mlp(layer, x):
  gate, up = layer["gate_up"] @ x
  return layer["down"] @ (gate / (1 + np.exp(-gate)) * up)


def forward(config: ModelConfig, params, tokens, positions=None, mask=None, layers=None):
  """Logits float64[T, V] and hidden states float64[layers + 1, T, H] of one row of tokens."""
  params = jax.tree.map(lambda a: np.asarray(a, np.float64), params)
  positions = range(len(tokens)) if positions is None else positions
  mask = np.tri(len(tokens), dtype=bool) if mask is None else mask
  x = params["embedding"][np.asarray(tokens)]
  states = [x]
  for i in range(config.num_layers if layers is None else layers):
    layer = params[f"layer_{i}"]
    normed = [norm(row, layer["attn_norm"], config.norm_eps) for row in x]
    x = x + attention(config, layer, normed, positions, mask)
    x = x + [mlp(layer, norm(row, layer["mlp_norm"], config.norm_eps)) for row in x]
    states.append(x)
  states[-1] = np.stack([norm(row, params["final_norm"], config.norm_eps) for row in x])
  head = params["embedding"] if config.tied_head else params["head"]
  return states[-1] @ head.T, np.stack(states)
