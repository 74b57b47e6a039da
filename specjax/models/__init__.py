"""Target models as pure functions: transformers, and Markov tables for proofs."""

from specjax.models import table, transformer

__all__ = ["table", "transformer"]
