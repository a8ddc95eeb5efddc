"""The words that stages share: bases, metrics, kinds of units, levels of quantiles."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Literal

Basis = Literal["call", "program", "kernel", "module", "network"]
Metric = Literal["latency", "memory", "accuracy", "energy"]
UnitKind = Literal["function", "program", "kernel", "module", "network"]
SI_UNIT: dict[str, str] = {"latency": "s", "memory": "B", "accuracy": "1", "energy": "J"}
BASIS_OF_KIND: dict[str, Basis] = {
    "function": "call",
    "program": "program",
    "kernel": "kernel",
    "module": "module",
    "network": "network",
}
# Below it the overhead that measuring subtracts is larger than the call itself.
MEASURED_FLOORS: dict[Metric, float] = {"latency": 5e-8, "memory": 0.0, "accuracy": 0.0, "energy": 0.0}
# What a number rests on: a measurement of this text, one of an earlier text times a predicted ratio, or the model.
# ``curve`` is a line through measurements at several sizes.
NumberSource = Literal["measured", "anchored", "curve", "predicted"]
METRICS_OF_BASIS: dict[str, tuple[Metric, ...]] = {
    "call": ("latency", "memory"),
    "program": ("latency", "memory"),
    "kernel": ("latency",),
    "module": ("latency",),
    "network": ("accuracy", "latency", "memory", "energy"),
}
# The levels of a prediction's quantiles: symmetric about the median, the ends of all bands among them.
LEVELS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995)
MEDIAN = LEVELS.index(0.5)
# Calibration tasks of texts that fix their cost start so.
FIXED_TASK = "fixed/"
DIRECTION_CONFIDENCE = 0.8
"""The share of answers to the question which of two texts costs more that have to be right for it to be answered."""


def exceedance(quantiles: tuple[float, ...], value: float, floor: float = 0.0) -> float:
    """The probability above ``value`` under positive quantiles at ``LEVELS``; NaN without quantiles.

    Between quantiles it is interpolated in the logarithm; beyond the outermost it is theirs.
    """
    if not quantiles:
        return math.nan
    at = bisect_right(quantiles, value)
    if at in (0, len(LEVELS)):
        return 1 - LEVELS[min(at, len(LEVELS) - 1)]
    low, high = max(quantiles[at - 1], floor), quantiles[at]
    share = math.log(value / low) / math.log(high / low) if 0 < low < min(value, high) < math.inf else 0.0
    return 1 - (LEVELS[at - 1] + min(share, 1.0) * (LEVELS[at] - LEVELS[at - 1]))
