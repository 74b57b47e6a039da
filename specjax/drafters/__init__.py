"""Drafters: one file for each family."""

from specjax.drafters.block_diffusion import block_diffusion
from specjax.drafters.feature import feature
from specjax.drafters.layer_skip import layer_skip
from specjax.drafters.ngram import ngram
from specjax.drafters.parallel_heads import parallel_heads
from specjax.drafters.second_model import second_model

__all__ = [
    "block_diffusion", "feature", "layer_skip", "ngram", "parallel_heads", "second_model"]
