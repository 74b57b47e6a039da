"""Exact laws of rules, by enumeration instead of sampling."""

from specjax.exact.law import law

__all__ = ["law"]
