"""Drafters: one file for each family."""

from specjax.drafters.layer_skip import layer_skip
from specjax.drafters.ngram import ngram
from specjax.drafters.second_model import second_model

__all__ = ["layer_skip", "ngram", "second_model"]
