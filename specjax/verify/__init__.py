"""Verification rules: one file each, one formula each."""

from specjax.verify.block import block
from specjax.verify.greedy import greedy
from specjax.verify.gumbel import gumbel
from specjax.verify.kseq import kseq
from specjax.verify.lenient import lenient
from specjax.verify.list_gumbel import list_gumbel
from specjax.verify.match import match
from specjax.verify.multipath_block import multipath_block
from specjax.verify.recursive import recursive
from specjax.verify.rule import ANY, CHAINS, Judgement, Rule
from specjax.verify.specinfer import specinfer
from specjax.verify.token import token
from specjax.verify.traversal import traversal
from specjax.verify.typical import typical
from specjax.verify.where import where

__all__ = [
    "ANY",
    "CHAINS",
    "Judgement",
    "Rule",
    "block",
    "greedy",
    "gumbel",
    "kseq",
    "lenient",
    "list_gumbel",
    "match",
    "multipath_block",
    "recursive",
    "specinfer",
    "token",
    "traversal",
    "typical",
    "where",
]
