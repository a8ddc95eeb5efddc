"""Predictions and measured values of a task -> named figures with 95 % intervals from a bootstrap over whole groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from .prediction_table import PredictionTable
from .resampling import (
    Array,
    Figure,
    Names,
    RankCorrelation,
    Ranks,
    Statistic,
    Weights,
    codes,
    mean_of,
    median_of,
    members,
    spearman,
    with_interval,
)
from .rows import Row

MIN_CELL = 20
MIN_UNIT = 5


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
