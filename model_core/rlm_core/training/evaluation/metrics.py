"""Predictions and measured values of a task -> named figures with 95 % intervals from a bootstrap over whole groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau, rankdata

from .prediction_table import PredictionTable
from .rows import Row

Array = npt.NDArray[np.float64]
Names = npt.NDArray[Any]  # names, or codes that stand for them
Indices = npt.NDArray[np.int64]
Interval = tuple[float, float]
Correlation = Callable[[Array, Array], float | None]
RESAMPLES = 200
MIN_CELL = 20
MIN_UNIT = 5


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


def spearman(predicted: Array, actual: Array) -> float | None:
    """Spearman's rank correlation; None when either is constant."""
    if len(actual) < 2:
        return None
    first, second = rankdata(predicted), rankdata(actual)
    first, second = first - first.mean(), second - second.mean()
    norm = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum() / norm) if norm > 0 else None


def kendall(predicted: Array, actual: Array) -> float | None:
    """Kendall's tau-b; None when either is constant."""
    if len(actual) < 2:
        return None
    tau = float(kendalltau(predicted, actual).statistic)
    return None if np.isnan(tau) else tau


def mean_within(
    predicted: Array, actual: Array, cells: Names, *, weighted: bool, correlation: Correlation = spearman
) -> float | None:
    """The mean of a correlation within cells of at least ``MIN_CELL`` rows, weighted by rows or not."""
    values, weights = [], []
    for selected in members(cells):
        value = correlation(predicted[selected], actual[selected]) if len(selected) >= MIN_CELL else None
        if value is not None:
            values.append(value)
            weights.append(len(selected) if weighted else 1)
    return float(np.average(values, weights=weights)) if values else None


def members(names: Names) -> list[Indices]:
    """The rows of each name, names in order."""
    if not len(names):
        return []
    order = np.argsort(names, kind="stable")
    _, starts = np.unique(names[order], return_index=True)
    return np.split(order, starts[1:])


def codes(names: Iterable[str]) -> Indices:
    """A number a name: sorting them over and over is much quicker than sorting names."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.int64)


def between(predicted: Array, actual: Array, units: Names, groups: Names) -> Figure | None:
    """Spearman between the medians of units, each of which belongs to one group; at least three units."""
    parts = members(units)
    if len(parts) < 3:
        return None
    first = np.array([np.median(predicted[selected]) for selected in parts])
    second = np.array([np.median(actual[selected]) for selected in parts])
    whose = np.array([groups[selected[0]] for selected in parts])
    return with_interval(whose, lambda drawn: spearman(first[drawn], second[drawn]))


def within(predicted: Array, actual: Array, units: Names, groups: Names) -> Figure | None:
    """The mean of Spearman within units of ``MIN_UNIT`` rows and varied values; None for a constant prediction."""
    parts = [selected for selected in members(units) if len(selected) >= MIN_UNIT and np.ptp(actual[selected]) > 0]
    if not parts or np.ptp(predicted) == 0:
        return None
    values = np.array([spearman(predicted[selected], actual[selected]) or 0.0 for selected in parts])
    whose = np.array([groups[selected[0]] for selected in parts])
    return with_interval(whose, lambda drawn: float(values[drawn].mean()))


def floor_auc(predicted: Array, at_floor: npt.NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve of "at the floor" scored by a low prediction."""
    low, high = int(at_floor.sum()), int((~at_floor).sum())
    if not low or not high:
        return None
    ranks = rankdata(-predicted)
    return float((ranks[at_floor].sum() - low * (low + 1) / 2) / (low * high))


def bootstrap(groups: Names, figure: Callable[[Indices], float | None]) -> Interval | None:
    """The 95 % interval of a figure of row indices, resampling whole groups; None with one group."""
    rng = np.random.default_rng(0)
    parts = members(groups)
    if len(parts) < 2:
        return None
    values = []
    for _ in range(RESAMPLES):
        drawn = rng.integers(0, len(parts), len(parts))
        value = figure(np.concatenate([parts[i] for i in drawn]))
        if value is not None:
            values.append(value)
    if not values:
        return None
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def with_interval(groups: Names, figure: Callable[[Indices], float | None]) -> Figure | None:
    """A figure of row indices for all rows, with its interval; None when it has no meaning."""
    value = figure(np.arange(len(groups)))
    if value is None:
        return None
    return Figure(value, *(bootstrap(groups, figure) or (None, None)))


def share(values: Array, groups: Names) -> Figure | None:
    """The mean of values from 0 to 1."""
    return with_interval(groups, lambda rows: float(values[rows].mean()))


Figures = dict[str, Figure]
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

    def error(rows: Indices) -> float | None:
        selected = rows[above[rows]]
        return float(np.median(ratios[selected])) if len(selected) else None

    found: dict[str, Figure | None] = {
        "spearman": with_interval(groups, lambda rows: spearman(predicted[rows], actual[rows])),
        "error": with_interval(groups, error),
    }
    if columns.floor > 0:
        found["floor_auc"] = with_interval(groups, lambda rows: floor_auc(predicted[rows], ~above[rows]))
    if columns.basis == "call":
        found["by_family"] = _cells(predicted, columns, columns.project_groups)
    elif columns.basis == "program":
        found["in_quarter"] = with_interval(
            groups, lambda rows: mean_within(predicted[rows], actual[rows], columns.quarters[rows], weighted=True)
        )
    elif columns.basis in ("kernel", "module"):
        found["between"] = between(predicted, actual, columns.units, groups)
        found["within"] = within(predicted, actual, columns.units, groups)
    if len(np.unique(columns.settings)) > 1:
        found["by_setting"] = _cells(predicted, columns, columns.settings)
    if columns.metric == "accuracy":
        found["kendall"] = with_interval(
            groups,
            lambda rows: mean_within(
                predicted[rows], actual[rows], columns.settings[rows], weighted=False, correlation=kendall
            ),
        )
    return {name: figure for name, figure in found.items() if figure is not None}


def _cells(predicted: Array, columns: Columns, cells: Names) -> Figure | None:
    return with_interval(
        columns.groups,
        lambda rows: mean_within(predicted[rows], columns.actual[rows], cells[rows], weighted=False),
    )


def gain(predicted: Array, baseline: Array, columns: Columns) -> Figure | None:
    """Spearman of the model less that of a baseline, on the same resampled groups."""

    def difference(rows: Indices) -> float | None:
        first = spearman(predicted[rows], columns.actual[rows])
        second = spearman(baseline[rows], columns.actual[rows])
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
        found[f"cover{name}"] = share(inside, columns.groups)
        found[f"width{name}"] = with_interval(columns.groups, partial(_median, widths))
    return {name: figure for name, figure in found.items() if figure is not None}


def _median(values: Array, rows: Indices) -> float:
    return float(np.median(values[rows]))


def _raised(values: Array, floor: float) -> Array:
    """Values that logarithms can be taken of."""
    return np.maximum(values, floor if floor > 0 else 1e-30)
