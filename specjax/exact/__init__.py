"""Exact laws of rules, by enumeration instead of sampling."""

from specjax.exact.certify import Case, Certificate, certify
from specjax.exact.law import law

__all__ = ["Case", "Certificate", "certify", "law"]
