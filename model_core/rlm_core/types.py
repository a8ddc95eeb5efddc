"""The dataclasses that travel between the stages: unit, query, prediction, measurement.

SI units everywhere: latency in seconds, memory in bytes, accuracy as a fraction. Only rendering turns them into µs or
MiB.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Basis = Literal["call", "program", "kernel", "module", "network"]
Metric = Literal["latency", "memory", "accuracy"]
UnitKind = Literal["function", "program", "kernel", "module", "network"]

SI_UNIT: dict[str, str] = {"latency": "s", "memory": "B", "accuracy": "1"}
BASIS_OF_KIND: dict[str, Basis] = {
    "function": "call",
    "program": "program",
    "kernel": "kernel",
    "module": "module",
    "network": "network",
}
METRICS_OF_BASIS: dict[str, tuple[Metric, ...]] = {
    "call": ("latency", "memory"),
    "program": ("latency", "memory"),
    "kernel": ("latency",),
    "module": ("latency",),
    "network": ("accuracy", "latency"),
}
# The levels of a prediction's quantiles: symmetric about the median, the ends of all bands among them.
LEVELS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995)
MEDIAN = LEVELS.index(0.5)


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of a source text: 0-based lines, columns in UTF-8 bytes, and byte offsets."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
    start_byte: int
    end_byte: int


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a source file that gets predictions.

    ``text`` is what the model reads, with the indentation of its first line removed; ``span`` covers it in the file,
    ``name`` covers the identifier and ``header`` ends where the signature ends (an inlay hint goes there).
    """

    kind: UnitKind
    language: str
    qualname: str
    text: str
    span: Span
    name: Span
    header: Span

    @property
    def basis(self) -> Basis:
        """The kind of measurement that predictions for this unit stand for."""
        return BASIS_OF_KIND[self.kind]


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that a unit calls: its source text and its distance in the call graph (1 = called directly)."""

    text: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class CodeText:
    """What the predictor reads about one unit: its source, what it calls, its language and basis.

    ``workloads`` are those that the unit's file wants to know about, each as pairs of name and value. They say what to
    ask; no number depends on them otherwise.
    """

    text: str
    language: str
    basis: Basis
    callees: tuple[Callee, ...] = ()
    workloads: tuple[tuple[tuple[str, str], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """The question about a unit: metric, device and workload (judge and date, sizes, dtype, data set).

    ``device=None`` and an empty workload ask for the model's defaults for the unit's basis.
    """

    metric: Metric
    device: str | None = None
    workload: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Band:
    """A calibrated interval in SI units. ``low`` is 0 when the value may lie at or below the metric's floor.

    ``groups`` and ``rows`` say on how many held-out groups and rows the interval was calibrated and ``level`` which
    slice of the data they are, for example ``call/latency``.
    """

    low: float
    high: float
    coverage: float
    groups: int
    rows: int
    level: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one query, in SI units, or the reason why the model abstains.

    ``median`` is 0 when the value most likely lies at or below ``floor``, the smallest value that the measurement
    resolves. ``bands`` are ordered by coverage, the default (80 %) first. ``quantiles`` are those at ``LEVELS``,
    calibrated like the bands, whose ends are among them; empty when the model abstains. A ``transient`` abstention says
    nothing about the text (a server could not be asked) and must not be kept for long.
    """

    basis: Basis
    metric: Metric
    device: str | None
    workload: Mapping[str, str]
    model: str
    median: float | None
    bands: tuple[Band, ...]
    floor: float
    truncated: bool
    abstained: str | None = None
    quantiles: tuple[float, ...] = ()
    transient: bool = False

    def above(self, value: float) -> float:
        """The calibrated probability that the cost is above ``value`` (SI units); NaN when the model abstains."""
        return exceedance(self.quantiles, value, self.floor)

    @property
    def band(self) -> Band | None:
        """The default band, None when the model abstains."""
        return self.bands[0] if self.bands else None


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
