"""Verification rules: one file each, one formula each."""

from specjax.verify.greedy import greedy
from specjax.verify.match import match
from specjax.verify.rule import Rule
from specjax.verify.token import token

__all__ = ["Rule", "greedy", "match", "token"]
