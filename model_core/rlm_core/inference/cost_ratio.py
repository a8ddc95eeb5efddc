"""The ratio of a cost after and before an edit, with its own calibrated band.

The errors of two predictions of nearly the same text are nearly the same, so a ratio is known better than either value,
on edits like those that it is calibrated on. It is predicted in log10 from the differences of three numbers: the
medians; for programs, the n-gram ridge's change role, which was fitted within problems: what one solution costs
compared with another; and for functions, the work that static analysis finds. Its band comes from pairs of texts, as in
:mod:`rlm_core.inference.residuals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rlm_core.types import LEVELS, MEDIAN, Basis, CalibrationSource, CostRatio, Metric

from .calibration import bands
from .residuals import Residuals

Array = npt.NDArray[np.float64]
Differences = tuple[float, float, float]
_MOST_WEIGHT = 1e6


@dataclass(frozen=True, slots=True)
class RatioModel:
    """Log10 ratio = ``weights`` (median, change role, work) times differences; its error is ``spread`` times residuals.

    The expected size of an error is ``spread[0] + spread[1] * |log10 ratio|``. No log10 ratio is predicted beyond
    ``most``, the largest for which there were enough calibration pairs.
    """

    weights: tuple[float, float, float]
    spread: tuple[float, float]
    most: float
    residuals: Residuals

    def __post_init__(self) -> None:
        if not all(abs(value) <= _MOST_WEIGHT for value in (*self.weights, *self.spread)):
            raise ValueError(f"weights and spread must be from -{_MOST_WEIGHT:g} to {_MOST_WEIGHT:g}")
        if min(self.spread) < 0 or self.most < 0:
            raise ValueError("spread and most must not be negative")

    def predict(self, differences: Array) -> Array:
        """Log10 ratios from the differences of log10 medians, change roles and log10 work, ``(pairs, 3)``."""
        ratios: Array = differences @ np.asarray(self.weights)
        return np.clip(ratios, -self.most, self.most)

    def size(self, ratio: Array) -> Array:
        """The expected size of the error of log10 ratios."""
        return self.spread[0] + self.spread[1] * np.abs(ratio)


def ratio_quantiles(model: RatioModel, differences: Differences) -> tuple[float, ...]:
    """Calibrated quantiles at ``LEVELS`` of the ratio of two different texts."""
    place = model.predict(np.array([differences]))
    size = model.size(place)
    logs = np.clip(place + size * np.asarray(model.residuals.quantiles), -300, 300)
    return tuple(float(10**log) for log in logs)


def ratio_task(basis: str, metric: str) -> str:
    """The name of the calibration of ratios of a basis and metric."""
    return f"changes/{basis}/{metric}"


def cost_ratio(
    basis: Basis,
    metric: Metric,
    device: str | None,
    model_id: str,
    model: RatioModel,
    differences: Differences,
    task: str,
) -> CostRatio:
    """The ratio from the differences of log10 medians, change roles and log10 work; ``task`` calibrated its band."""
    quantiles = ratio_quantiles(model, differences)
    source = CalibrationSource(task)
    ratio_bands = bands(quantiles, model.residuals.groups, model.residuals.rows, source)
    return CostRatio(basis, metric, device, model_id, quantiles[MEDIAN], ratio_bands, quantiles)


def centred(ratio: CostRatio) -> CostRatio:
    """A ratio with its median moved to 1."""
    scale = ratio.ratio or 1.0
    moved = tuple(quantile / scale for quantile in ratio.quantiles)
    first = ratio.bands[0]
    return replace(ratio, ratio=1.0, quantiles=moved, bands=bands(moved, first.groups, first.rows, first.source))


def unchanged(basis: Basis, metric: Metric, device: str | None, model_id: str, model: RatioModel) -> CostRatio:
    """The ratio of two texts that are the same to the model: 1 without doubt."""
    quantiles = (1.0,) * len(LEVELS)
    source = CalibrationSource(ratio_task(basis, metric))
    ratio_bands = bands(quantiles, model.residuals.groups, model.residuals.rows, source)
    return CostRatio(basis, metric, device, model_id, 1.0, ratio_bands, quantiles)


def log_median(median: float, floor: float) -> float:
    """Log10 of a median; one at or below the floor counts as the floor."""
    return math.log10(max(median, floor, 1e-12))
