"""SI values -> text for people: `10–160 µs`, `≤3 KiB`, and the label of an inlay hint.

Two significant digits; times in ns, µs, ms, s, sizes in B, KiB, MiB, GiB, accuracies in %. A band whose lower end is 0
reads `≤high`: the value may lie below what the measurement resolves. A label never exceeds its width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlm_core.types import Band, Basis, Metric, Prediction

if TYPE_CHECKING:
    from rlm_core.measurement import Measurement

    from rlm_lsp.settings.model import LabelForm

LABEL_WIDTH = 25
# Below it what was taken off for the measuring is larger than the call.
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
class _Unit:
    scale: float
    symbol: str

    def digits(self, value: float) -> str:
        """``value`` in this unit, to two significant digits."""
        rounded = float(f"{value / self.scale:.2g}")
        if rounded >= 10_000:
            return f"{rounded:.1e}".replace("e+0", "e").replace("e+", "e").replace(".0e", "e")
        return f"{rounded:.0f}" if rounded >= 100 else f"{rounded:g}"


def quantity(metric: Metric, value: float, *, space: str = " ") -> str:
    """One value with its unit, for example ``40 µs``; ``space`` stands before the unit."""
    unit = _unit(metric, value)
    return f"{unit.digits(value)}{space}{unit.symbol}"


def median(prediction: Prediction, *, space: str = " ") -> str:
    """The median of a prediction; ``≤floor`` when it lies below what the measurement resolves, empty when abstained."""
    if prediction.median is None:
        return ""
    if prediction.median <= 0:
        return f"≤{quantity(prediction.metric, prediction.floor, space=space)}"
    return quantity(prediction.metric, prediction.median, space=space)


def measured(one: Measurement, *, space: str = " ") -> str:
    """The median of a measurement; ``≤50 ns`` below what timing resolves."""
    floor = MEASURED_FLOORS[one.metric]
    below = "≤" if 0 < floor >= one.median else ""
    return below + quantity(one.metric, max(one.median, floor), space=space)


def spread(prediction: Prediction, *, space: str = " ") -> str:
    """The median and how far the ends of the default band are from it: ``40 −30/+120 µs``, ``90 ±3 %``.

    Empty where an end is unknown or the median lies below what the measurement resolves.
    """
    interval, centre = prediction.band, prediction.median
    if interval is None or centre is None or min(interval.low, centre) <= 0 or math.isinf(interval.high):
        return ""
    unit = _unit(prediction.metric, centre)
    down, up = (unit.digits(max(distance, 0.0)) for distance in (centre - interval.low, interval.high - centre))
    distances = f"±{up}" if down == up else f"−{down}/+{up}"
    return f"{unit.digits(centre)} {distances}{space}{unit.symbol}"


def factor(ratio: float) -> str:
    """A ratio of at least 1 as ``2.1×``, with two significant digits."""
    return f"{float(f'{ratio:.2g}'):g}×" if ratio < 999.5 else ">999×"


def number(value: float) -> str:
    """A number with two significant digits, three from 100 on, never as a power of ten."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 99.5 else f"{value:.2g}"


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


def band(metric: Metric, interval: Band, floor: float = 0.0, *, space: str = " ") -> str:
    """An interval as ``10–160 µs``, ``8 µs–2 ms`` or ``≤3 KiB``; ``space`` stands before each unit."""
    low, high = interval.low, max(interval.high, floor)
    if low <= 0:
        return upper(metric, high, space)
    if math.isinf(high):
        return "≥" + _joined(metric, low, space)
    top = _unit(metric, high)
    # 0.8–2 ms reads better than 800 µs–2 ms; 0.01–2 ms does not.
    bottom = top if low / top.scale >= 0.095 else _unit(metric, low)
    low_digits, high_digits = bottom.digits(low), top.digits(high)
    if bottom is not top:
        return f"{low_digits}{space}{bottom.symbol}–{high_digits}{space}{top.symbol}"
    shown = low_digits if low_digits == high_digits else f"{low_digits}–{high_digits}"
    return f"{shown}{space}{top.symbol}"


def label(
    predictions: Sequence[Prediction],
    form: LabelForm = "band",
    width: int = LABEL_WIDTH,
    marks: Mapping[Metric, str] = _UNMARKED,
    *,
    named: bool = False,
) -> str:
    """A unit's predictions in at most ``width`` characters; empty if all are abstained.

    Of a metric that is asked at several sizes or devices the first answer is shown, and ``+5`` tells of five more
    where there is room. ``marks`` stand behind their metrics, and if ``named`` their names before them. Where the full
    form is too long the spaces before units go first, then the lower ends, then the last metrics, of which marked ones
    stay longest, and at last the marks.
    """
    answered = [prediction for prediction in predictions if prediction.band is not None]
    first = list({prediction.metric: prediction for prediction in reversed(answered)}.values())[::-1]
    for shown in _fewer(first, marks):
        for write in _FORMS[form]:
            names = (METRIC_WORDS[one.metric] if named else "" for one in shown)
            parts = (
                f"{name} {write(one)} {marks.get(one.metric, '')}".strip()
                for name, one in zip(names, shown, strict=True)
            )
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


def _band(prediction: Prediction, space: str) -> str:
    assert prediction.band is not None, "abstained predictions have no label"
    return band(prediction.metric, prediction.band, prediction.floor, space=space)


def _only_upper(prediction: Prediction) -> str:
    assert prediction.band is not None, "abstained predictions have no label"
    return upper(prediction.metric, max(prediction.band.high, prediction.floor))


_MEDIANS = (median, lambda prediction: median(prediction, space=""))
_FORMS: dict[str, tuple[Callable[[Prediction], str], ...]] = {
    "band": (lambda one: _band(one, " "), lambda one: _band(one, ""), _only_upper),
    "median": _MEDIANS,
    "median±": (
        lambda one: spread(one) or _band(one, " "),
        lambda one: spread(one, space="") or _band(one, ""),
        *_MEDIANS,
    ),
}


def upper(metric: Metric, high: float, space: str = " ") -> str:
    """An upper end as ``≤3 KiB``; ``space`` stands before the unit."""
    return "no upper bound" if math.isinf(high) else "≤" + _joined(metric, high, space)


def _joined(metric: Metric, value: float, space: str) -> str:
    return quantity(metric, value, space=space)


_UNITS = {metric: tuple(_Unit(*entry) for entry in entries) for metric, entries in _SCALES.items()}


def _unit(metric: Metric, value: float) -> _Unit:
    """The largest unit in which the rounded value is at least 1, else the smallest."""
    units = _UNITS[metric]
    return next((unit for unit in reversed(units) if float(f"{value / unit.scale:.2g}") >= 1), units[0])
