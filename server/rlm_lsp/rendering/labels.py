"""SI values -> text for people: ``10–160 µs``, ``≤3 KiB``, and what a unit waits for.

Two significant digits in one unit that is chosen after rounding (``1 µs``, never ``1000 ns``); times in ns, µs, ms, s,
sizes in B, KiB, MiB, GiB, energy in nJ, µJ, mJ, J. Accuracies have one decimal, ``93.9 %``: those of the networks that
people compare differ by less than one per cent. Ratios are written by :func:`ratio_digits` alone, so that one ratio has
one text: ``2.1×``, ``>999×``. A band whose lower end is 0 reads ``≤high``: the value may be below what the measurement
resolves. ``✓`` marks what was measured, ``≈`` what is carried over from a measurement of an earlier text and ``~`` what
is on a curve through measurements, each with its median first: ``✓ 2.1 µs (1.8–3 µs)``. ``?`` alone marks the number of
an uncalibrated model. A unit that waits is labelled with what it waits for, and with its computing time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlm_core.types import (
    MEASURED_FLOORS,
    Amount,
    Band,
    Basis,
    CostRatio,
    MeasuredCost,
    MeasuredPrediction,
    Metric,
    NumberSource,
    Prediction,
    SizedPrediction,
    Wait,
    WaitKind,
    WorkFacts,
)

from rlm_lsp.history.comparison import usual_waits

if TYPE_CHECKING:
    from rlm_core.measurement import Measurement

METRIC_WORDS: dict[Metric, str] = {
    "latency": "latency",
    "memory": "peak memory",
    "accuracy": "accuracy",
    "energy": "energy",
}
BASIS_WORDS: dict[Basis, str] = {
    "call": "one call, as tests would call it",
    "program": "a whole solution on the judge's inputs",
    "kernel": "one launch of the kernel",
    "module": "one forward pass of the module",
    "network": "the whole network",
}
# A known wait or a cause is worth naming from this share of the predicted cost on; more than four cannot reach it.
LEAST_COST_SHARE = 0.25
# Shorter waits are less than what the call of `sleep` itself takes to return.
LEAST_WAIT = 1e-5
_LARGE_MEMORY = 2.0**20  # bytes that are shown next to a wait
MAY_NOT_END = "may not end"
RISEN, FALLEN, SAME = "▲", "▼", "≈"
# Ratios beyond these are written as ">999" and "<0.001": hints have no room for more, and bands there are wide.
MOST_RATIO, LEAST_RATIO = 999, 0.001
# In front of a number that was measured, or carried over from a measurement; followed by a question mark in doubt,
# which stands alone where the model is uncalibrated.
SOURCE_MARKS: Mapping[NumberSource, str] = MappingProxyType(
    {"measured": "✓", "anchored": "≈", "curve": "~", "predicted": ""}
)
DOUBTFUL = "?"
WAIT_WORDS: dict[WaitKind, str] = {
    WaitKind.USER: "user",
    WaitKind.NETWORK: "network",
    WaitKind.DATABASE: "database",
    WaitKind.PROCESS: "process",
    WaitKind.THREAD: "thread",
    WaitKind.TIME: "sleep",
}
JOIN = " · "
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "latency": ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "memory": ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB")),
    "accuracy": ((0.01, "%"),),
    "energy": ((1e-9, "nJ"), (1e-6, "µJ"), (1e-3, "mJ"), (1.0, "J")),
}
_COUNTS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class _ScaledUnit:
    scale: float
    symbol: str

    def digits(self, value: float) -> str:
        """``value`` in this unit, to two significant digits; per cents with one decimal."""
        if self.symbol == "%":
            # The extension rounds in the same way (`quantity.ts`).
            return f"{math.floor(value / self.scale * 10 + 0.5) / 10:.1f}"
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
    if prediction.median <= 0 < prediction.floor:
        return f"≤{quantity(prediction.metric, prediction.floor)}"
    return quantity(prediction.metric, prediction.median)


def marked_median(prediction: Prediction) -> str:
    """The median with the mark of what it rests on: ``✓ 2.1 µs``; ``✓? 2.1 µs`` where it may not hold here."""
    return f"{source_mark(prediction)} {median(prediction)}".strip()


def source_mark(prediction: Prediction) -> str:
    """The mark of what a number rests on; empty for one that a calibrated model predicts from the text alone."""
    doubtful = prediction.cost.marks if isinstance(prediction, MeasuredPrediction) else prediction.uncalibrated
    return SOURCE_MARKS[prediction.source] + (DOUBTFUL if doubtful else "")


def marked_spread(prediction: Prediction) -> str:
    """The marked median and the default band: ``✓ 2.1 µs (1.8–3 µs)``; the median alone where they are the same."""
    shown = band(prediction.metric, prediction.band, prediction.floor) if prediction.band is not None else ""
    return marked_median(prediction) + (f" ({shown})" if shown not in ("", median(prediction)) else "")


def measured(measurement: Measurement | MeasuredCost) -> str:
    """The median of a measurement; ``≤50 ns`` below what timing resolves."""
    floor = MEASURED_FLOORS[measurement.metric]
    below = "≤" if 0 < floor >= measurement.median else ""
    return below + quantity(measurement.metric, max(measurement.median, floor))


def size_ranges(sizes: Mapping[str, Sequence[float]], most: int = 3) -> str:
    """The least and largest value of sizes, whose values rise: ``items 3–40, rows[] 2``; ``+2`` for those left out."""
    shown = [
        f"{name} {size(values[0])}" + (f"–{size(values[-1])}" if size(values[-1]) != size(values[0]) else "")
        for name, values in list(sizes.items())[:most]
    ]
    return ", ".join(shown) + (f" +{len(sizes) - most}" if len(sizes) > most else "")


def size(value: float) -> str:
    """A size, as it can be written too: ``40``, ``2.5``, ``1.25k``, ``3M``."""
    rounded = float(f"{value:.3g}")
    scale, symbol = next((one for one in _COUNTS if rounded >= one[0]), (1.0, ""))
    return f"{rounded / scale:.12g}{symbol}"


def spread(prediction: Prediction) -> str:
    """The median and its distance to the ends of the default band: ``40 −30/+120 µs``, ``93.9 ±0.2 %``.

    Empty where an end is unknown or the median is below what the measurement resolves.
    """
    interval, centre = prediction.band, prediction.median
    if interval is None or centre is None or min(interval.low, centre) <= 0 or math.isinf(interval.high):
        return ""
    unit = _unit(prediction.metric, centre)
    down, up = (unit.digits(max(distance, 0.0)) for distance in (centre - interval.low, interval.high - centre))
    distances = f"±{up}" if down == up else f"−{down}/+{up}"
    return f"{unit.digits(centre)} {distances} {unit.symbol}"


def number(value: float) -> str:
    """A number with two significant digits, never as a power of ten."""
    return f"{Decimal(f'{value:.2g}'):,f}"


def ratio_digits(ratio: float) -> str:
    """A ratio without its sign: ``2.1``, ``0.48``, and ``>999`` or ``<0.001`` where more digits would say no more."""
    rounded = float(f"{ratio:.2g}")
    if rounded > MOST_RATIO:
        return f">{MOST_RATIO}"
    return f"{rounded:g}" if rounded >= LEAST_RATIO else f"<{LEAST_RATIO:g}"


def times(ratio: float) -> str:
    """A ratio as ``2.1×`` or ``0.48×``."""
    return f"{ratio_digits(ratio)}×"


def about(ratio: float) -> str:
    """A ratio in a sentence: ``about 2.1×``, ``over 999×``, ``under 0.001×``."""
    text = times(ratio)
    word = {">": "over", "<": "under"}.get(text[0])
    return f"{word} {text[1:]}" if word is not None else f"about {text}"


def ratio_band(interval: Band) -> str:
    """An interval of ratios as ``0.9–2.3×``, ``≥1.4×`` or ``≤0.9×``."""
    low, high = ratio_digits(interval.low), ratio_digits(interval.high)
    if low == high:
        return f"{low}×"
    if high.startswith(">") and not low.startswith("<"):
        return f"≥{low}×"
    return f"≤{high}×" if low.startswith("<") and not high.startswith(">") else f"{low}–{high}×"


def is_same(change: CostRatio) -> bool:
    """Return whether two texts are the same to the model, so that their ratio is certainly 1."""
    return change.ratio == 1 and all(band.low == band.high == 1 for band in change.bands)


def is_open_at_sizes(change: CostRatio) -> bool:
    """Return whether the ratio of two revisions at given sizes is open: its band then holds for small inputs only."""
    return bool(change.sizes) and not change.is_decided


def error(factor: float) -> str:
    """A median error as ``1.04×``: it is close to 1, where two significant digits would hide what is left of it."""
    return f"{factor:.2f}×"


def mark(ratio: float, metric: Metric = "latency") -> str:
    """Return the mark of a change: ``▲ 2.1×`` for a cost that has grown, ``▼ 1.8× memory`` for one that has fallen."""
    changed = f"{RISEN} {times(ratio)}" if ratio >= 1 else f"{FALLEN} {times(1 / max(ratio, 1e-12))}"
    return changed if metric == "latency" else f"{changed} {metric}"


def workload(named: Mapping[str, str]) -> str:
    """A workload as ``batch 1, dtype fp16``."""
    return ", ".join(f"{name} {value}" for name, value in sorted(named.items()))


def band(metric: Metric, interval: Band, floor: float = 0.0) -> str:
    """An interval as ``10–160 µs``, ``8 µs–2 ms`` or ``≤3 KiB``."""
    low, high = interval.low, max(interval.high, floor)
    if low <= 0:
        return upper(metric, high) if high > 0 else quantity(metric, 0.0)
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


def is_upper_end(prediction: Prediction) -> bool:
    """Return whether labels show only an upper end, since the cost may be below what the measurement resolves.

    How many times as much that is as before has no meaning.
    """
    return prediction.band is not None and prediction.band.low <= 0


def known_wait(work: WorkFacts | None) -> Amount:
    """The sleeps of known length and the waits whose length the settings give together, in seconds.

    The likely sum is part of the predicted latency. The length of another wait, such as a timeout, is only a bound. One
    that an input repeats has no most.
    """
    waits = [wait for wait in work.waits if wait.kind is WaitKind.TIME or wait.is_known] if work is not None else []
    return _together(waits)


def times_each(waits: Sequence[Wait]) -> str:
    """The waits of one kind whose length the settings give: ``1 ms``, ``12 × 1 ms``, ``n × 1 ms`` for each item."""
    each = max(wait.each or 0.0 for wait in waits)
    count = sum(wait.seconds.likely for wait in waits if wait.seconds is not None) / each if each else 0.0
    length = quantity("latency", each)
    if any(wait.per for wait in waits):
        return f"n × {length}"
    return length if round(count, 1) in (0.0, 1.0) else f"{number(count)} × {length}"


def _together(waits: Sequence[Wait]) -> Amount:
    known = [wait.seconds for wait in waits if wait.seconds is not None]
    least, likely, most = (sum(getattr(amount, bound) for amount in known) for bound in ("least", "likely", "most"))
    return Amount(least, likely, math.inf if any(wait.per for wait in waits) else most)


def computing(prediction: Prediction, work: WorkFacts) -> str:
    """The median of a latency without the known waits in it; empty where there is no number."""
    if prediction.median is None:
        return ""
    seconds = max(prediction.median - known_wait(work).likely, work.latency.known.likely)
    return quantity("latency", seconds) if seconds > 0 else ""


def wait_text(prediction: Prediction, work: WorkFacts | None) -> str:
    """Return what a unit waits for, as in its label without the computing time; empty if it does not wait."""
    waits = work is not None and prediction.metric == "latency" and not _includes_waits(prediction)
    forms = _waits(prediction, work) if waits and work is not None else ()
    return forms[0] if forms else ""


def wait_label(prediction: Prediction, work: WorkFacts | None) -> str:
    """Return what a unit waits for and its computing time, as in a wide label; empty if it does not wait."""
    forms = wait_forms([prediction], work) if work is not None else ()
    return forms[0] if forms else ""


def wait_forms(predictions: Sequence[Prediction], work: WorkFacts) -> Sequence[str]:
    """The texts for the latency of a unit that waits, the longest first; none for a unit that does not.

    The second is the one to show next to another metric. How long a unit that may not end computes has no
    meaning, so it gets no time.
    """
    prediction = next((prediction for prediction in predictions if prediction.metric == "latency"), None)
    waits = _waits(prediction, work) if prediction is not None and not _includes_waits(prediction) else ()
    if prediction is None or not waits:
        return ()
    if work.endless is not None:
        return *waits, "endless"
    time = computing(prediction, work)
    full, short = (f"{text}{JOIN}{time}" if time else text for text in (waits[0], waits[-1]))
    if any(other.metric == "memory" and (other.median or 0.0) >= _LARGE_MEMORY for other in predictions):
        # Next to so much memory the computing time of what waits does not matter.
        return full, *waits, "waits"
    # A known wait next to an unknown one is most of the latency: it matters more than the computing time.
    return full, waits[0] if waits[0] != waits[-1] and re.search("[≥≤]", waits[0]) else short, *waits, "waits"


def _includes_waits(prediction: Prediction) -> bool:
    """Return whether a number is all that a call takes: it was measured, or the text fixes it at given sizes."""
    if isinstance(prediction, SizedPrediction) and prediction.at.kind == "arithmetic":
        return True
    return prediction.source in ("measured", "curve")


_NEARLY_ALL = 0.9  # of the calls, which enter a loop over an input


def _waits(prediction: Prediction, work: WorkFacts) -> tuple[str, ...]:
    """Return what a unit waits for, in at least two forms, the longest first; empty if it does not wait."""
    known = _together([wait for wait in work.waits if wait.kind is WaitKind.TIME])
    least = LEAST_COST_SHARE * (prediction.median or 0.0)
    shown = usual_waits(work, prediction.basis)
    kinds = {wait.kind for wait in shown} - {WaitKind.TIME}
    given = {kind: [wait for wait in shown if wait.kind is kind and wait.each is not None] for kind in kinds}
    times = [wait for wait in shown if wait.kind is WaitKind.TIME]
    length = ""
    compact: tuple[str, ...] = ()
    # A loop over an input waits for one item at the least, if there is one.
    certain = [wait.seconds for wait in times if wait.per and wait.share >= _NEARLY_ALL]
    each = sum(seconds.likely for seconds in certain if seconds is not None)
    if known.least + each >= max(LEAST_WAIT, least):
        length = f"≥{quantity('latency', known.least + each)}"
    elif times:
        if not kinds and any(wait.seconds is None or wait.per for wait in times):
            kinds.add(WaitKind.TIME)
        elif max(LEAST_WAIT, least) <= known.most < math.inf and not any(wait.per for wait in times):
            length = f"≤{quantity('latency', known.most)}"
    names = [
        f"{times_each(given[kind])} {word}" if given.get(kind) else word
        for kind, word in WAIT_WORDS.items()
        if kind in kinds
    ]
    if names:
        short = f"waits: {names[0]}" + (f" +{len(names) - 1}" if names[1:] else "")
        counted = [wait for wait in shown if wait.is_known]
        if all(given.get(kind) for kind in kinds) and not any(wait.per for wait in counted):
            short = f"{quantity('latency', _together(counted).likely)} waits"
        if length.startswith("≤"):
            # The whole has no bound next to waits of unknown length, so the label says what is bounded.
            compact = (f"waits {length} + {short.removeprefix('waits: ')}",)
            length = f"sleep {length}"
        full = f"waits: {', '.join([*names, *filter(None, [length])])}"
    else:
        full = short = f"{length} waits" if length else ""
    if work.endless is not None:
        return f"{MAY_NOT_END}, {full}" if full else MAY_NOT_END, MAY_NOT_END
    return (full, *compact, short) if full else ()


_UNITS = {metric: tuple(_ScaledUnit(*entry) for entry in entries) for metric, entries in _SCALES.items()}


def _unit(metric: Metric, value: float) -> _ScaledUnit:
    """The largest unit in which the rounded value is at least 1, else the smallest; of 1000 B the next one."""
    units = _UNITS[metric]
    shown = [float(f"{value / unit.scale:.2g}") for unit in units]
    place = next((place for place in reversed(range(len(units))) if shown[place] >= 1), 0)
    return units[place + 1] if shown[place] >= 1000 and place + 1 < len(units) else units[place]
