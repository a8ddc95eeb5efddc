"""Predictions and measured values of a task -> named figures with 95 % intervals from a bootstrap over whole groups.

A resample of groups is a weight for each row: how often its group was drawn. A statistic is a function of the weights,
and what it needs in order is sorted once for all resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from .rows import PredictionTable, Row

Array = npt.NDArray[np.float64]
Names = npt.NDArray[Any]  # names, or codes that stand for them
Indices = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int64]  # how often each row counts, (rows,)
Statistic = Callable[[Weights], float | None]  # None where the rows that count give it no meaning
Interval = tuple[float, float]
RESAMPLES = 200
MIN_CELL = 20
MIN_UNIT = 5
# Name of a figure -> title of its column.
RANKS = {
    "spearman": "Spearman",
    "gain": "over baseline",
    "by_family": "mean of project groups",
    "in_quarter": "within quarter",
    "between": "between units",
    "within": "within units",
    "by_setting": "mean of settings",
    "kendall": "Kendall, mean of settings",
    "error": "median log10 error",
    "floor_auc": "floor AUC",
}
BANDS = {"cover80": "80 % covers", "width80": "width", "cover90": "90 % covers", "width90": "width of 90 %"}


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


def kendall(predicted: Array, actual: Array) -> float | None:
    """Kendall's tau-b; None when either is constant."""
    if len(actual) < 2:
        return None
    tau = float(kendalltau(predicted, actual).statistic)
    return None if np.isnan(tau) else tau


def kendall_within(predicted: Array, actual: Array, cells: Names) -> Statistic:
    """The mean of Kendall's tau-b over cells of at least ``MIN_CELL`` rows."""

    def mean(weights: Weights) -> float | None:
        rows = np.repeat(np.arange(len(weights)), weights)
        large = [rows[selected] for selected in members(cells[rows]) if len(selected) >= MIN_CELL]
        values = [kendall(predicted[selected], actual[selected]) for selected in large]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    return mean


def between(predicted: Array, actual: Array, units: Names, groups: Names) -> Figure | None:
    """Spearman between the medians of units, each of which belongs to one group; at least three units."""
    parts = members(units)
    if len(parts) < 3:
        return None
    first = np.array([np.median(predicted[selected]) for selected in parts])
    second = np.array([np.median(actual[selected]) for selected in parts])
    whose = np.array([groups[selected[0]] for selected in parts])
    return with_interval(whose, RankCorrelation(first, second).mean)


def within(predicted: Array, actual: Array, units: Names, groups: Names) -> Figure | None:
    """The mean of Spearman within units of ``MIN_UNIT`` rows and varied values; None for a constant prediction."""
    parts = [selected for selected in members(units) if len(selected) >= MIN_UNIT and np.ptp(actual[selected]) > 0]
    if not parts or np.ptp(predicted) == 0:
        return None
    values = np.array([spearman(predicted[selected], actual[selected]) or 0.0 for selected in parts])
    whose = np.array([groups[selected[0]] for selected in parts])
    return with_interval(whose, mean_of(values))


def floor_auc(predicted: Array, at_floor: npt.NDArray[np.bool_]) -> Statistic:
    """Area under the ROC curve of "at the floor" scored by a low prediction."""
    ranks = Ranks(-predicted)

    def area(weights: Weights) -> float | None:
        low = int(weights[at_floor].sum())
        high = int(weights.sum()) - low
        if not low or not high:
            return None
        summed = float((weights * ranks.of(weights))[at_floor].sum())
        return (summed - low * (low + 1) / 2) / (low * high)

    return area


Figures = dict[str, Figure]


@dataclass(frozen=True, slots=True)
class Columns:
    """The rows of one task as columns, ``(rows,)`` each, names as codes; ``floor`` in SI units, 0 for none."""

    basis: str
    metric: str
    floor: float
    actual: Array
    groups: Names
    project_groups: Names
    quarters: Names
    units: Names
    settings: Names

    @classmethod
    def of(cls, rows: Sequence[Row], floor: float) -> Columns:
        """The columns of rows of one basis and metric."""
        names = (
            codes(getattr(row, name) for row in rows)
            for name in ("whole", "project_group", "quarter", "unit", "setting")
        )
        actual = np.array([row.value for row in rows], dtype=np.float64)
        return cls(rows[0].code.basis, rows[0].query.metric, floor, actual, *names)


def point_figures(predicted: Array, columns: Columns) -> Figures:
    """Figures of point predictions in SI units."""
    actual, groups = columns.actual, columns.groups
    above = actual > columns.floor
    ratios = np.abs(np.log10(_raised(predicted, columns.floor) / _raised(actual, columns.floor)))

    error = median_of(ratios[above])
    found: dict[str, Figure | None] = {
        "spearman": with_interval(groups, RankCorrelation(predicted, actual).mean),
        "error": with_interval(groups, lambda weights: error(weights[above])),
    }
    if columns.floor > 0:
        found["floor_auc"] = with_interval(groups, floor_auc(predicted, ~above))
    if columns.basis == "call":
        found["by_family"] = with_interval(groups, _in_cells(predicted, columns, columns.project_groups).mean)
    elif columns.basis == "program":
        in_quarters = _in_cells(predicted, columns, columns.quarters)
        found["in_quarter"] = with_interval(groups, partial(in_quarters.mean, weighted=True))
    elif columns.basis in ("kernel", "module"):
        found["between"] = between(predicted, actual, columns.units, groups)
        found["within"] = within(predicted, actual, columns.units, groups)
    if len(np.unique(columns.settings)) > 1:
        found["by_setting"] = with_interval(groups, _in_cells(predicted, columns, columns.settings).mean)
    if columns.metric == "accuracy":
        found["kendall"] = with_interval(groups, kendall_within(predicted, actual, columns.settings))
    return {name: figure for name, figure in found.items() if figure is not None}


def _in_cells(predicted: Array, columns: Columns, cells: Names) -> RankCorrelation:
    return RankCorrelation(predicted, columns.actual, cells, MIN_CELL)


def gain(predicted: Array, baseline: Array, columns: Columns) -> Figure | None:
    """Spearman of the model less that of a baseline, on the same resampled groups."""
    ours, theirs = RankCorrelation(predicted, columns.actual), RankCorrelation(baseline, columns.actual)

    def difference(weights: Weights) -> float | None:
        first, second = ours.mean(weights), theirs.mean(weights)
        return None if first is None or second is None else first - second

    return with_interval(columns.groups, difference)


def covered(low: Array, high: Array, actual: Array, floor: float) -> Array:
    """1 where a band covers the value, else 0; a low end of 0 covers everything at or below the high end."""
    inside = (actual >= low) & (np.maximum(actual, floor) <= high)
    return inside.astype(np.float64)


def band_figures(table: PredictionTable, columns: Columns) -> Figures:
    """Coverage of both bands and their median width as a factor, high over low; nothing without bands."""
    found: dict[str, Figure | None] = {}
    for name in ("80", "90"):
        low, high = getattr(table, f"low{name}"), getattr(table, f"high{name}")
        if np.isnan(low).any():
            continue
        inside = covered(low, high, columns.actual, columns.floor)
        widths = _raised(high, columns.floor) / _raised(low, columns.floor)
        found[f"cover{name}"] = with_interval(columns.groups, mean_of(inside))
        found[f"width{name}"] = with_interval(columns.groups, median_of(widths))
    return {name: figure for name, figure in found.items() if figure is not None}


def _raised(values: Array, floor: float) -> Array:
    """Values that logarithms can be taken of."""
    return np.maximum(values, floor if floor > 0 else 1e-30)
