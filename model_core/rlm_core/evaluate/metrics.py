"""The figures of one slice of predictions, with 95 % intervals from a bootstrap over whole groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau, rankdata

Array = npt.NDArray[np.float64]
Names = npt.NDArray[np.str_]
RESAMPLES = 200
MIN_CELL = 20
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class BandFigures:
    """A band: the share it covers with its interval, and its median width as a ratio high / low."""

    coverage: float
    interval: Interval
    width: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one slice and one predictor; None where a figure has no meaning.

    ``spearman_by_family`` is the mean over families (packages) of 20 rows or more, ``spearman_within`` the mean over
    language x quarter cells of 20 rows or more, weighted by rows. ``error`` is the median of |log10 ratio| over rows
    above the floor, ``floor_auc`` how well the prediction separates rows at the floor from those above.
    """

    spearman: float | None
    spearman_interval: Interval | None
    kendall: float | None
    spearman_by_family: float | None
    spearman_within: float | None
    error: float | None
    floor_auc: float | None
    band80: BandFigures | None = None
    band90: BandFigures | None = None


def spearman(predicted: Array, actual: Array) -> float | None:
    """Spearman's rank correlation; None when either is constant."""
    if len(actual) < 2:
        return None
    first, second = rankdata(predicted), rankdata(actual)
    first, second = first - first.mean(), second - second.mean()
    norm = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum() / norm) if norm > 0 else None


def mean_within(predicted: Array, actual: Array, cells: Names, *, weighted: bool) -> float | None:
    """The mean of Spearman within cells of at least ``MIN_CELL`` rows."""
    values, weights = [], []
    for cell in np.unique(cells):
        mine = cells == cell
        value = spearman(predicted[mine], actual[mine]) if mine.sum() >= MIN_CELL else None
        if value is not None:
            values.append(value)
            weights.append(mine.sum() if weighted else 1)
    return float(np.average(values, weights=weights)) if values else None


def floor_auc(predicted: Array, at_floor: npt.NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve of "at the floor" scored by a low prediction."""
    low, high = int(at_floor.sum()), int((~at_floor).sum())
    if not low or not high:
        return None
    ranks = rankdata(-predicted)
    return float((ranks[at_floor].sum() - low * (low + 1) / 2) / (low * high))


def bootstrap(groups: Names, figure: Callable[[npt.NDArray[np.int64]], float | None]) -> Interval | None:
    """The 95 % interval of a figure of row indices, resampling whole groups."""
    rng = np.random.default_rng(0)
    order = np.argsort(groups, kind="stable")
    _, starts = np.unique(groups[order], return_index=True)
    members = np.split(order, starts[1:])
    values = []
    for _ in range(RESAMPLES):
        drawn = rng.integers(0, len(members), len(members))
        value = figure(np.concatenate([members[i] for i in drawn]))
        if value is not None:
            values.append(value)
    if not values:
        return None
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def point_figures(
    predicted: Array, actual: Array, floor: float, groups: Names, families: Names, cells: Names | None
) -> Figures:
    """Figures of point predictions (any monotone score will do for the ranks; the error needs SI units)."""
    above = actual > floor
    safe = np.maximum(predicted, floor if floor > 0 else 1e-30)
    tau = kendalltau(predicted, actual).statistic if len(actual) > 1 else np.nan
    return Figures(
        spearman=spearman(predicted, actual),
        spearman_interval=bootstrap(groups, lambda rows: spearman(predicted[rows], actual[rows])),
        kendall=None if np.isnan(tau) else float(tau),
        spearman_by_family=mean_within(predicted, actual, families, weighted=False) if cells is None else None,
        spearman_within=mean_within(predicted, actual, cells, weighted=True) if cells is not None else None,
        error=float(np.median(np.abs(np.log10(safe[above] / actual[above])))) if above.any() else None,
        floor_auc=floor_auc(predicted, ~above) if floor > 0 else None,
    )


def band_figures(low: Array, high: Array, actual: Array, floor: float, groups: Names) -> BandFigures:
    """Coverage of bands in SI units; a low end of 0 covers everything at or below the high end."""
    covered = (actual >= low) & (np.maximum(actual, floor) <= high)
    interval = bootstrap(groups, lambda rows: float(covered[rows].mean())) or (0.0, 1.0)
    smallest = floor if floor > 0 else 1e-30
    width = float(np.median(np.maximum(high, smallest) / np.maximum(low, smallest)))
    return BandFigures(float(covered.mean()), interval, width)
