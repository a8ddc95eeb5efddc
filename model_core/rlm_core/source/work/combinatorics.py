"""The number of ways to choose some of several items, as a float: exact while small, infinite beyond its range."""

from __future__ import annotations

import math
from typing import Literal

Choice = Literal["permutations", "combinations", "repeated"]
"""Whether the order counts, does not, or does not and an item may be chosen again."""
_MOST_EXACT_LOG, _MOST_LOG = 34.0, 709.0  # natural logarithms: of 2**49, and of the largest float


def ways_to_choose(kind: Choice, whole: float, part: float) -> float:
    """The number of ways to choose ``part`` of ``whole`` items."""
    if part < 0 or whole < 0 or (part > whole and kind != "repeated"):
        return 0.0
    if kind == "repeated":
        whole = max(whole + part - 1, 0.0)
    if part > whole:
        return float(part == 0)
    if not math.isfinite(whole):
        return math.inf
    if whole > 1e15:
        # The logarithms of the factorials would cancel out.
        log = part * math.log(whole)
    else:
        log = math.lgamma(whole + 1) - math.lgamma(whole - part + 1)
    if kind != "permutations":
        log -= math.lgamma(part + 1)
    if log >= _MOST_LOG:
        return math.inf
    return float(round(math.exp(log))) if log < _MOST_EXACT_LOG else math.exp(log)
