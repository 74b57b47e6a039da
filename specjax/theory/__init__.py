"""Speed-up formulas, optimal gamma, tree values and rooflines; no model and no measurement."""

from specjax.theory.costs import best_gamma, break_even, Costs, MOST_GAMMA, predict, window_cost
from specjax.theory.devices import Device, DEVICES
from specjax.theory.lenience import lenient_acceptance, lenient_bound
from specjax.theory.roofline import Attention, Roofline, roofline
from specjax.theory.speed import (
    break_even_alpha, expected_tokens, operation_factor, optimal_gamma, predicted_speedup, speedup)
from specjax.trees.value import tree_value

__all__ = [
    "Attention",
    "Costs",
    "DEVICES",
    "Device",
    "MOST_GAMMA",
    "Roofline",
    "best_gamma",
    "break_even",
    "break_even_alpha",
    "expected_tokens",
    "lenient_acceptance",
    "lenient_bound",
    "operation_factor",
    "optimal_gamma",
    "predict",
    "predicted_speedup",
    "roofline",
    "speedup",
    "tree_value",
    "window_cost",
]
