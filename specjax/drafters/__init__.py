"""Drafters: one file for each family."""

from specjax.drafters.autoregressive import autoregressive
from specjax.drafters.layer_skip import layer_skip
from specjax.drafters.ngram import ngram

__all__ = ["autoregressive", "layer_skip", "ngram"]
