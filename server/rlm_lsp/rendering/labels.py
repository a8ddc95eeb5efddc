"""SI values -> text for people: ``10–160 µs``, ``≤3 KiB``, and the label of an inlay hint.

Two significant digits in one unit that is chosen after rounding (``1 µs``, never ``1000 ns``); times in ns, µs, ms, s,
sizes in B, KiB, MiB, GiB, accuracies in %. A band whose lower end is 0 reads ``≤high``: the value may be below what the
measurement resolves. A label never exceeds its width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlm_core.types import Band, Basis, Metric, Prediction

from rlm_lsp.settings.model import MAX_LABEL, LabelForm

if TYPE_CHECKING:
    from rlm_core.measurement import Measurement

# Below it the overhead that was subtracted is larger than the call itself.
MEASURED_FLOORS: dict[Metric, float] = {"latency": 5e-8, "memory": 0.0}
METRIC_WORDS: dict[Metric, str] = {"latency": "latency", "memory": "peak memory", "accuracy": "accuracy"}
BASIS_WORDS: dict[Basis, str] = {
    "call": "one call, as its tests call it",
    "program": "a whole solution on the judge's inputs",
    "kernel": "one launch of the kernel",
    "module": "one forward pass of the module",
    "network": "the whole network",
}
_JOIN = " · "
_UNMARKED: Mapping[Metric, str] = MappingProxyType({})
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "latency": ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "memory": ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB")),
    "accuracy": ((0.01, "%"),),
}


@dataclass(frozen=True, slots=True)
class _ScaledUnit:
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
    """The median of a prediction; ``≤floor`` when it is below what the measurement resolves, empty when abstained."""
    if prediction.median is None:
        return ""
    if prediction.median <= 0:
        return f"≤{quantity(prediction.metric, prediction.floor)}"
    return quantity(prediction.metric, prediction.median)


def measured(measurement: Measurement) -> str:
    """The median of a measurement; ``≤50 ns`` below what timing resolves."""
    floor = MEASURED_FLOORS[measurement.metric]
    below = "≤" if 0 < floor >= measurement.median else ""
    return below + quantity(measurement.metric, max(measurement.median, floor))


def spread(prediction: Prediction) -> str:
    """The median and its distance to the ends of the default band: ``40 −30/+120 µs``, ``90 ±3 %``.

    Empty where an end is unknown or the median is below what the measurement resolves.
    """
    interval, centre = prediction.band, prediction.median
    if interval is None or centre is None or min(interval.low, centre) <= 0 or math.isinf(interval.high):
        return ""
    unit = _unit(prediction.metric, centre)
    down, up = (unit.digits(max(distance, 0.0)) for distance in (centre - interval.low, interval.high - centre))
    distances = f"±{up}" if down == up else f"−{down}/+{up}"
    return f"{unit.digits(centre)} {distances} {unit.symbol}"


def factor(ratio: float) -> str:
    """A ratio of at least 1 as ``2.1×``, with two significant digits."""
    return f"{float(f'{ratio:.2g}'):g}×" if ratio < 999.5 else ">999×"


def number(value: float) -> str:
    """A number with two significant digits, never as a power of ten."""
    return f"{Decimal(f'{value:.2g}'):,f}"


def ratio_band(interval: Band) -> str:
    """An interval of a ratio as ``0.9–2.3×``."""
    low, high = number(interval.low), number(interval.high)
    if math.isinf(interval.high) or interval.high >= 1e4:
        return f"≥{low}×"
    return f"{low}×" if low == high else f"{low}–{high}×"


def times(ratio: float) -> str:
    """A ratio as ``2.1×`` or ``0.48×``."""
    return factor(ratio) if ratio >= 1 else f"{ratio:.2g}×"


def mark(ratio: float) -> str:
    """How a cost has changed: ``▲ 2.1×`` for one that has grown, ``▼ 1.8×`` for one that has fallen."""
    return f"▲ {factor(ratio)}" if ratio >= 1 else f"▼ {factor(1 / max(ratio, 1e-12))}"


def workload(named: Mapping[str, str]) -> str:
    """A workload as ``batch 1, dtype fp16``."""
    return ", ".join(f"{name} {value}" for name, value in sorted(named.items()))


def band(metric: Metric, interval: Band, floor: float = 0.0) -> str:
    """An interval as ``10–160 µs``, ``8 µs–2 ms`` or ``≤3 KiB``."""
    low, high = interval.low, max(interval.high, floor)
    if low <= 0:
        return upper(metric, high)
    if math.isinf(high):
        return f"≥{quantity(metric, low)}"
    top = _unit(metric, high)
    # 0.8–2 ms reads better than 800 µs–2 ms; 0.01–2 ms does not.
    bottom = top if low / top.scale >= 0.095 else _unit(metric, low)
    low_digits, high_digits = bottom.digits(low), top.digits(high)
    if bottom is not top:
        return f"{low_digits} {bottom.symbol}–{high_digits} {top.symbol}"
    shown = low_digits if low_digits == high_digits else f"{low_digits}–{high_digits}"
    return f"{shown} {top.symbol}"


def upper(metric: Metric, high: float) -> str:
    """An upper end as ``≤3 KiB``."""
    return "no upper bound" if math.isinf(high) else f"≤{quantity(metric, high)}"


def label(
    predictions: Sequence[Prediction],
    form: LabelForm = "band",
    width: int = MAX_LABEL,
    marks: Mapping[Metric, str] = _UNMARKED,
    *,
    named: bool = False,
) -> str:
    """The label of a unit's predictions, in at most ``width`` characters; empty if all are abstained.

    Of a metric that is predicted at several sizes or devices the first prediction is shown, and ``+5`` stands for five
    more where there is room. ``marks`` follow their metrics; if ``named``, the names of the metrics precede them. A
    label that is too long first gets a shorter form of the last metrics (an upper end, or a median), then fewer
    metrics, of which marked ones stay longest, and finally loses its marks.
    """
    answered = [prediction for prediction in predictions if prediction.band is not None]
    first = list({prediction.metric: prediction for prediction in reversed(answered)}.values())[::-1]
    full, short = _FORMS[form]
    for shown in _fewer(first, marks):
        for in_full in range(len(shown), -1, -1):
            parts = []
            for number, one in enumerate(shown):
                text = full(one) if number < in_full else short(one)
                name = METRIC_WORDS[one.metric] if named else ""
                parts.append(f"{name} {text} {marks.get(one.metric, '')}".strip())
            text = _JOIN.join(parts)
            if len(text) <= width:
                metrics = {prediction.metric for prediction in shown}
                more = sum(prediction.metric in metrics for prediction in answered) - len(shown)
                return f"{text} +{more}" if more and len(f"{text} +{more}") <= width else text
    return label(predictions, form, width, named=named) if marks else ""


def _fewer(predictions: list[Prediction], marks: Mapping[Metric, str]) -> Iterator[list[Prediction]]:
    """All, then one less and so on; the last goes first, and those without a mark before those with one."""
    shown = list(predictions)
    while shown:
        yield list(shown)
        plain = [number for number, one in enumerate(shown) if one.metric not in marks]
        del shown[plain[-1] if plain else -1]


def _band(prediction: Prediction) -> str:
    assert prediction.band is not None, "abstained predictions have no label"
    return band(prediction.metric, prediction.band, prediction.floor)


def _upper(prediction: Prediction) -> str:
    assert prediction.band is not None, "abstained predictions have no label"
    return upper(prediction.metric, max(prediction.band.high, prediction.floor))


# The full and the short form of one metric.
_FORMS: dict[str, tuple[Callable[[Prediction], str], Callable[[Prediction], str]]] = {
    "band": (_band, _upper),
    "median": (median, median),
    "median±": (lambda prediction: spread(prediction) or _band(prediction), median),
}
_UNITS = {metric: tuple(_ScaledUnit(*entry) for entry in entries) for metric, entries in _SCALES.items()}


def _unit(metric: Metric, value: float) -> _ScaledUnit:
    """The largest unit in which the rounded value is at least 1, else the smallest."""
    units = _UNITS[metric]
    return next((unit for unit in reversed(units) if float(f"{value / unit.scale:.2g}") >= 1), units[0])
