"""Intervals by bootstrap over whole groups, and statistics of rows that count several times.

A resample of groups is a weight for each row: how often its group was drawn. A statistic is a function of the weights,
and what it needs in order is sorted once for all resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Names = npt.NDArray[Any]  # names, or codes that stand for them
Indices = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int64]  # how often each row counts, (rows,)
Statistic = Callable[[Weights], float | None]  # None where the rows that count give it no meaning
Interval = tuple[float, float]
RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with the ends of its 95 % interval, None where there are too few groups for one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> Interval | None:
        """Both ends, None without an interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def codes(names: Iterable[str]) -> Indices:
    """A number for each name: sorting them over and over is much quicker than sorting names."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.int64)


def members(names: Names) -> list[Indices]:
    """The rows of each name, names in order."""
    if not len(names):
        return []
    order = np.argsort(names, kind="stable")
    _, starts = np.unique(names[order], return_index=True)
    return np.split(order, starts[1:])


def bootstrap(groups: Names, statistic: Statistic) -> Interval | None:
    """The 95 % interval of a statistic, resampling whole groups; None with one group."""
    rng = np.random.default_rng(0)
    names, group = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        return None
    values = []
    for _ in range(RESAMPLES):
        times = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
        value = statistic(times[group])
        if value is not None:
            values.append(value)
    if not values:
        return None
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def with_interval(groups: Names, statistic: Statistic) -> Figure | None:
    """A statistic of all rows, with its interval; None when it has no meaning."""
    value = statistic(np.ones(len(groups), np.int64))
    if value is None:
        return None
    return Figure(value, *(bootstrap(groups, statistic) or (None, None)))


def mean_of(values: Array) -> Statistic:
    """The mean; None where no row counts."""

    def mean(weights: Weights) -> float | None:
        total = int(weights.sum())
        return float(weights @ values) / total if total else None

    return mean


def median_of(values: Array) -> Statistic:
    """The median; None where no row counts."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]

    def median(weights: Weights) -> float | None:
        upto = np.cumsum(weights[order])
        if not len(upto) or not upto[-1]:
            return None
        # The places of the middle value, or of both, in a list that has each row as often as it counts.
        middle = np.array([(upto[-1] - 1) // 2, upto[-1] // 2])
        return float(ordered[np.searchsorted(upto, middle, side="right")].mean())

    return median


class Ranks:
    """Ranks of values within cells; equal values share the mean of their ranks."""

    def __init__(self, values: Array, cells: Indices | None = None) -> None:
        cells = np.zeros(len(values), np.int64) if cells is None else cells
        self._order = np.lexsort((values, cells))
        ordered, cell = values[self._order], cells[self._order]
        is_new_cell = np.ones(len(values), bool)
        is_new_cell[1:] = cell[1:] != cell[:-1]
        is_new_value = is_new_cell.copy()
        is_new_value[1:] |= ordered[1:] != ordered[:-1]
        self._run = np.cumsum(is_new_value) - 1
        # Of each run of equal values the last row, and the first row of its cell, in order.
        self._last = np.flatnonzero(np.append(is_new_value, True)[1:])
        firsts = np.maximum.accumulate(np.where(is_new_cell, np.arange(len(values)), 0))
        self._first_of_cell = firsts[is_new_value]

    def of(self, weights: Weights) -> Array:
        """The ranks from 1, ``(rows,)``, in a list that has each row as often as it counts."""
        counted = weights[self._order]
        upto = np.cumsum(counted)
        ends = upto[self._last]
        before = np.concatenate([[0], ends[:-1]])
        below = upto[self._first_of_cell] - counted[self._first_of_cell]
        result = np.empty(len(weights))
        result[self._order] = ((before + ends + 1) / 2 - below)[self._run]
        return result


class RankCorrelation:
    """Spearman's rank correlation, in all rows or in each cell of at least ``least`` rows."""

    def __init__(self, predicted: Array, actual: Array, cells: Names | None = None, least: int = 2) -> None:
        cells = np.zeros(len(actual), np.int64) if cells is None else cells
        names, self._cell = np.unique(cells, return_inverse=True)
        self._count, self._least = len(names), least
        self._first, self._second = Ranks(predicted, self._cell), Ranks(actual, self._cell)

    def mean(self, weights: Weights, *, weighted: bool = False) -> float | None:
        """The mean over cells where both values vary, each as often as it has rows if ``weighted``; None if none do."""
        sizes = self._sums(weights)
        middle = ((sizes + 1) / 2)[self._cell]
        first, second = self._first.of(weights) - middle, self._second.of(weights) - middle
        norms = np.sqrt(self._sums(weights * first**2) * self._sums(weights * second**2))
        known = (sizes >= self._least) & (norms > 0)
        if not known.any():
            return None
        values = self._sums(weights * first * second)[known] / norms[known]
        return float(np.average(values, weights=sizes[known] if weighted else None))

    def _sums(self, values: Array | Weights) -> Array:
        sums: Array = np.bincount(self._cell, values, self._count).astype(np.float64)
        return sums


def spearman(predicted: Array, actual: Array) -> float | None:
    """Spearman's rank correlation; None when either is constant."""
    return RankCorrelation(predicted, actual).mean(np.ones(len(actual), np.int64))
