"""Which figures a slice gets, by basis: rows and answers in, named figures with intervals out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from .answers import Answers
from .metrics import (
    Array,
    Figure,
    Indices,
    Names,
    between,
    codes,
    floor_auc,
    kendall,
    mean_within,
    share,
    spearman,
    with_interval,
    within,
)
from .rows import Row

Figures = dict[str, Figure]
# Name of a figure -> title of its column.
RANKS = {
    "spearman": "Spearman",
    "gain": "over baseline",
    "by_family": "mean of families",
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
    """The rows of one slice as columns, ``(rows,)`` each, names as codes; ``floor`` in SI units, 0 for none."""

    basis: str
    metric: str
    floor: float
    actual: Array
    groups: Names
    families: Names
    quarters: Names
    units: Names
    settings: Names

    @classmethod
    def of(cls, rows: Sequence[Row], floor: float) -> Columns:
        """The columns of rows of one basis and metric."""
        names = (
            codes(getattr(row, name) for row in rows) for name in ("whole", "family", "quarter", "unit", "setting")
        )
        actual = np.array([row.value for row in rows], dtype=np.float64)
        return cls(rows[0].code.basis, rows[0].query.metric, floor, actual, *names)


def point_figures(predicted: Array, columns: Columns) -> Figures:
    """Figures of point predictions in SI units."""
    actual, groups = columns.actual, columns.groups
    above = actual > columns.floor
    ratios = np.abs(np.log10(_raised(predicted, columns.floor) / _raised(actual, columns.floor)))

    def error(rows: Indices) -> float | None:
        mine = rows[above[rows]]
        return float(np.median(ratios[mine])) if len(mine) else None

    found: dict[str, Figure | None] = {
        "spearman": with_interval(groups, lambda rows: spearman(predicted[rows], actual[rows])),
        "error": with_interval(groups, error),
    }
    if columns.floor > 0:
        found["floor_auc"] = with_interval(groups, lambda rows: floor_auc(predicted[rows], ~above[rows]))
    if columns.basis == "call":
        found["by_family"] = _cells(predicted, columns, columns.families)
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


def band_figures(answers: Answers, columns: Columns) -> Figures:
    """Coverage of both bands and their median width as a factor, high over low; nothing without bands."""
    found: dict[str, Figure | None] = {}
    for name in ("80", "90"):
        low, high = getattr(answers, f"low{name}"), getattr(answers, f"high{name}")
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
