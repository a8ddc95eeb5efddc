"""Measured costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from .sizes import SizedCalls, SizeSpread
from .vocabulary import Metric


class MeasurementMark(StrEnum):
    """Reasons why a measurement may not hold here as it is."""

    OTHER_MACHINE = "other-machine"  # of another processor, and not scaled to this one
    OTHER_PYTHON = "other-python"  # with another minor version than that of the project
    OLD = "old"


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """A measured cost of a unit as it applies here, in SI units: median, 10 % and 90 % quantile over its calls.

    ``calls`` were measured in ``tests`` tests on the processor or GPU ``device`` with ``runtime`` (``cpython-3.12``) on
    ``date`` (YYYY-MM-DD). ``kind`` is that of :class:`rlm_core.measurement.Measurement`. ``workload`` is as a query has
    it, as pairs of name and value. ``cpu_ratio`` is set where a latency was multiplied by it for this machine's CPU.
    ``committed`` is set for a measurement that came with the project. ``sizes`` are those of its calls by name, and
    ``sized`` the calls by their sizes, smallest first. ``tool`` names another tool that measured it, such as cProfile.
    """

    metric: Metric
    median: float
    low: float
    high: float
    calls: int
    tests: int
    kind: str
    device: str
    runtime: str
    date: str
    workload: tuple[tuple[str, str], ...] = ()
    cpu_ratio: float | None = None
    marks: tuple[MeasurementMark, ...] = ()
    committed: bool = False
    sizes: tuple[tuple[str, SizeSpread], ...] = ()
    sized: tuple[SizedCalls, ...] = field(default=(), hash=False)
    tool: str = ""


class FoundCost(NamedTuple):
    """A measured cost of a unit, and the text that was measured: None for the present one, empty if it is not known."""

    cost: MeasuredCost
    before: str | None


@dataclass(frozen=True, slots=True)
class KnownCost:
    """A measured cost of a function in SI units: median, and 10 % and 90 % quantiles over its calls."""

    metric: Metric
    median: float
    low: float
    high: float
