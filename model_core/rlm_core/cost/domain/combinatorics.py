"""The number of ways to choose some of several items, as a float: exact for few items, infinite beyond its range."""

from __future__ import annotations

import math
from typing import Literal

Choice = Literal["permutations", "combinations", "repeated"]
"""Ways to choose: the order counts, does not, or does not and an item may be chosen again."""
_FEW, _MOST_WHOLE = 64, 10**6  # items that are chosen, and of how many, where the number is computed as an integer
_MANY, _MANY_WHOLE = 100.0, 1e15  # above both the number is infinite
_MOST_LOG = 709.0  # of the largest float


def ways_to_choose(kind: Choice, whole: float, part: float) -> float:
    """The number of ways to choose ``part`` of ``whole`` items."""
    if part < 0 or whole < 0 or (part > whole and kind != "repeated"):
        return 0.0
    if kind == "repeated":
        whole = max(whole + part - 1, 0.0)
    if part > whole:
        return float(part == 0)
    if kind != "permutations":
        part = min(part, whole - part)
    if whole > _MANY_WHOLE and (part > _MANY or math.isinf(whole)):
        return math.inf
    if part <= _FEW and whole <= _MOST_WHOLE and whole == int(whole) and part == int(part):
        exact = (math.perm if kind == "permutations" else math.comb)(int(whole), int(part))
        return float(exact) if exact.bit_length() < 1024 else math.inf
    # Of many items the logarithms of the factorials would cancel out.
    few = whole <= _MANY_WHOLE
    log = math.lgamma(whole + 1) - math.lgamma(whole - part + 1) if few else part * math.log(whole)
    if kind != "permutations":
        log -= math.lgamma(part + 1)
    return math.exp(log) if log < _MOST_LOG else math.inf
