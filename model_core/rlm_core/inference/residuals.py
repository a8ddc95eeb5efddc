"""Answers of a forest without the head: its prediction, with bands from the residuals of held-out groups.

Where there are enough groups, a second forest predicts the size of the residual of a text; residuals in
units of that size have the same distribution for small and large networks of any kind, and their quantiles on groups
that no forest has seen are the bands (locally weighted split conformal, arXiv 1604.04173).

Forests of latencies work in log10 SI units. Accuracies crowd below one end of their range, so their forests work on
normal scores: the axis on which the training values are normally distributed.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rlm_core.types import LEVELS

from .trees import Forest

Array = npt.NDArray[np.float64]
KNOTS = tuple(np.linspace(-3, 3, 49).tolist())
_DATA_SHEET = "#sheet"
_WORK = {True: "#known", False: "#open"}
_STEP = 1e-9  # between knots of equal values
_MOST_LOG = 1e9  # of anything that a residual can be
_MOST_ROWS = 2**53


@dataclass(frozen=True, slots=True)
class Residuals:
    """Quantiles at ``LEVELS`` of (value - prediction) / expected size, and the held-out data they rest on.

    The size is 1 where no forest predicts it. ``axis`` are the log10 values at the normal scores ``KNOTS`` of a forest
    that works on them; else it is empty.
    """

    quantiles: tuple[float, ...]
    groups: int
    rows: int
    axis: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.quantiles) != len(LEVELS) or not np.all(np.diff(self.quantiles) >= 0):
            raise ValueError(f"residuals need {len(LEVELS)} rising quantiles")
        if self.axis and (len(self.axis) != len(KNOTS) or not np.all(np.diff(self.axis) > 0)):
            raise ValueError(f"an axis needs {len(KNOTS)} rising values")
        if any(abs(value) > _MOST_LOG for value in (*self.quantiles, *self.axis)):
            raise ValueError(f"residuals and their axis must be from -{_MOST_LOG:g} to {_MOST_LOG:g}")
        if not (0 <= self.groups <= _MOST_ROWS and 0 <= self.rows <= _MOST_ROWS):
            raise ValueError("groups and rows must be numbers of rows")


def spread_key(key: str) -> str:
    """The name of the forest that gives log10 of the residuals' expected size for the forest called ``key``."""
    return f"{key}#spread"


def data_sheet_key(key: str) -> str:
    """The key in ``card.json`` of the residuals of the forest ``key`` on devices known by their data sheet alone."""
    return f"{key}{_DATA_SHEET}"


def work_key(key: str, is_known: bool) -> str:
    """The key in ``card.json`` of the residuals of texts that fix what is done, or of those that leave it open."""
    return f"{key}{_WORK[is_known]}"


def forest_of(key: str) -> str:
    """The key of the forest that residuals belong to."""
    return key.partition("#")[0]


def normal_axis(logs: Array) -> tuple[float, ...]:
    """The log10 values at the normal scores ``KNOTS`` of training values; strictly rising."""
    found = np.quantile(logs, [NormalDist().cdf(knot) for knot in KNOTS])
    return tuple(float(value) for value in found + _STEP * np.arange(len(KNOTS)))


def to_axis(logs: Array, axis: tuple[float, ...]) -> Array:
    """log10 values -> where the forest works."""
    return np.interp(logs, axis, KNOTS) if axis else logs


def from_axis(places: Array, axis: tuple[float, ...]) -> Array:
    """Where the forest works -> log10 values."""
    return np.interp(places, KNOTS, axis) if axis else places


def fit_residuals(scores: Array, groups: npt.NDArray[np.str_], axis: tuple[float, ...] = ()) -> Residuals:
    """Conformal quantiles of held-out scores; a group counts by the square root of its size.

    Each tail leaves room for the future row, as in split conformal prediction, so that the share of values beyond a
    quantile is at most the stated one.
    """
    _, inverse, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights = 1 / np.sqrt(sizes[inverse])
    upper = {level: _upper(scores, weights, level) for level in LEVELS if level >= 0.5}
    lower = {level: -_upper(-scores, weights, 1 - level) for level in LEVELS if level < 0.5}
    found = {**upper, **lower}
    rising = np.maximum.accumulate([found[level] for level in LEVELS])
    return Residuals(tuple(round(float(value), 4) for value in rising), len(sizes), len(scores), axis)


def _upper(scores: Array, weights: Array, level: float) -> float:
    order = np.argsort(scores)
    cumulative = np.cumsum(weights[order])
    # The median needs no such allowance.
    spare = weights.mean() if level > 0.5 else 0.0
    index = int(np.searchsorted(cumulative, level * (cumulative[-1] + spare)))
    return float(scores[order[min(index, len(order) - 1)]])


def quantiles(
    forest: Forest,
    spread: Forest | None,
    residuals: Residuals,
    features: npt.NDArray[np.float32],
    floor: float,
    most: float,
) -> tuple[float, ...]:
    """Calibrated quantiles at ``LEVELS``, in SI units, of a text with these ``features``; 0 at or below the floor.

    Args:
        forest: predicts the value.
        spread: predicts log10 of the expected size of the residual; None where the size is 1.
        residuals: the calibration of both.
        features: ``(features,)``.
        floor: no smaller value can be measured; 0 for none.
        most: no value is larger.
    """
    place = float(forest.predict(features[None, :])[0])
    size = float(10 ** np.clip(spread.predict(features[None, :])[0], -300, 300)) if spread is not None else 1.0
    places = place + size * np.asarray(residuals.quantiles)
    logs = np.clip(from_axis(places, residuals.axis), -300, 300)
    values = tuple(float(min(10**log, most)) for log in logs)
    return tuple(0.0 if value <= floor else value for value in values)
