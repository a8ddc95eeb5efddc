"""SI values -> text for people: `10–160 µs`, `≤3 KiB`, and the label of an inlay hint.

Two significant digits; times in ns, µs, ms, s, sizes in B, KiB, MiB, GiB, accuracies in %. A band whose lower end is 0
reads `≤high`: the value may lie below what the measurement resolves. A label never exceeds ``LABEL_WIDTH`` characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm_core.types import Band, Basis, Metric, Prediction

LABEL_WIDTH = 25
METRIC_WORDS: dict[Metric, str] = {"latency": "latency", "memory": "peak memory", "accuracy": "accuracy"}
BASIS_WORDS: dict[Basis, str] = {
    "call": "one call, as its tests call it",
    "program": "a whole solution on the judge's inputs",
    "kernel": "one launch of the kernel",
    "module": "one forward pass of the module",
    "network": "the whole network",
}
_JOIN = " · "
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "latency": ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "memory": ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB")),
    "accuracy": ((0.01, "%"),),
}


@dataclass(frozen=True, slots=True)
class _Unit:
    scale: float
    symbol: str

    def digits(self, value: float) -> str:
        """``value`` in this unit, to two significant digits."""
        rounded = float(f"{value / self.scale:.2g}")
        if rounded >= 10_000:
            return f"{rounded:.1e}".replace("e+0", "e").replace("e+", "e").replace(".0e", "e")
        return f"{rounded:.0f}" if rounded >= 100 else f"{rounded:g}"


def quantity(metric: Metric, value: float) -> str:
    """One value with its unit, for example ``40 µs``."""
    unit = _unit(metric, value)
    return f"{unit.digits(value)} {unit.symbol}"


def median(prediction: Prediction) -> str:
    """The median of a prediction; ``≤floor`` when it lies below what the measurement resolves, empty when abstained."""
    if prediction.median is None:
        return ""
    if prediction.median <= 0:
        return f"≤{quantity(prediction.metric, prediction.floor)}"
    return quantity(prediction.metric, prediction.median)


def band(metric: Metric, interval: Band, floor: float = 0.0, *, space: str = " ") -> str:
    """An interval as ``10–160 µs``, ``8 µs–2 ms`` or ``≤3 KiB``; ``space`` stands before each unit."""
    low, high = interval.low, max(interval.high, floor)
    if low <= 0:
        return _upper(metric, high, space)
    if math.isinf(high):
        return "≥" + _joined(metric, low, space)
    upper = _unit(metric, high)
    # 0.8–2 ms reads better than 800 µs–2 ms; 0.01–2 ms does not.
    lower = upper if low / upper.scale >= 0.095 else _unit(metric, low)
    low_digits, high_digits = lower.digits(low), upper.digits(high)
    if lower is not upper:
        return f"{low_digits}{space}{lower.symbol}–{high_digits}{space}{upper.symbol}"
    shown = low_digits if low_digits == high_digits else f"{low_digits}–{high_digits}"
    return f"{shown}{space}{upper.symbol}"


def label(predictions: Sequence[Prediction]) -> str:
    """The default bands of a unit's predictions, at most ``LABEL_WIDTH`` characters; empty if all are abstained.

    Where the full form is too long the spaces before units go first, then the lower ends, then the last metrics.
    """
    answered = [prediction for prediction in predictions if prediction.band is not None]
    forms: tuple[Callable[[Prediction], str], ...] = (
        lambda prediction: _default_band(prediction, " "),
        lambda prediction: _default_band(prediction, ""),
        _only_upper,
    )
    for count in range(len(answered), 0, -1):
        for form in forms:
            text = _JOIN.join(form(prediction) for prediction in answered[:count])
            if len(text) <= LABEL_WIDTH:
                return text
    return ""


def _default_band(prediction: Prediction, space: str) -> str:
    assert prediction.band is not None, "abstained predictions have no label"
    return band(prediction.metric, prediction.band, prediction.floor, space=space)


def _only_upper(prediction: Prediction) -> str:
    assert prediction.band is not None, "abstained predictions have no label"
    return _upper(prediction.metric, max(prediction.band.high, prediction.floor), " ")


def _upper(metric: Metric, high: float, space: str) -> str:
    return "no upper bound" if math.isinf(high) else "≤" + _joined(metric, high, space)


def _joined(metric: Metric, value: float, space: str) -> str:
    unit = _unit(metric, value)
    return f"{unit.digits(value)}{space}{unit.symbol}"


_UNITS = {metric: tuple(_Unit(*entry) for entry in entries) for metric, entries in _SCALES.items()}


def _unit(metric: Metric, value: float) -> _Unit:
    """The largest unit in which the rounded value is at least 1, else the smallest."""
    units = _UNITS[metric]
    return next((unit for unit in reversed(units) if float(f"{value / unit.scale:.2g}") >= 1), units[0])
