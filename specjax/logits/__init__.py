"""Logits to laws: transforms that compose, and the laws and tokens that come of them."""

from specjax.logits.intersect import intersect
from specjax.logits.law import log_law, log_residual, residual, sample, tv
from specjax.logits.noise import noise
from specjax.logits.penalty import (
    frequency_penalty, presence_penalty, repetition_penalty, token_counts)
from specjax.logits.reduce import total
from specjax.logits.select import argmax
from specjax.logits.transform import chain, forbid, reads_counts, temperature, uses_counts
from specjax.logits.truncate import min_p, top_k, top_p
from specjax.logits.uncoupled import sample_uncoupled

__all__ = [
    "argmax",
    "chain",
    "forbid",
    "frequency_penalty",
    "intersect",
    "log_law",
    "log_residual",
    "min_p",
    "noise",
    "presence_penalty",
    "reads_counts",
    "repetition_penalty",
    "residual",
    "sample",
    "sample_uncoupled",
    "temperature",
    "token_counts",
    "top_k",
    "top_p",
    "total",
    "tv",
    "uses_counts",
]
