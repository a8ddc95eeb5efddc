"""The ratio of a cost after and before an edit, with its own calibrated band.

The errors of two predictions of nearly the same text are nearly the same, so a ratio is known far better than either
value. It is predicted in log10 from the difference of the two medians and, for programs, from the difference of the
n-gram ridge's change role, which was fitted within problems: what one solution costs compared with another. Its band
comes from pairs of texts, as in :mod:`rlm_core.inference.residuals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rlm_core.types import MEDIAN, Basis, CalibrationSource, CostRatio, Metric

from .calibration import bands
from .residuals import Residuals

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RatioModel:
    """Log10 ratio = ``weights`` (median, change role) times the differences; its error is ``spread`` times residuals.

    The expected size of an error is ``spread[0] + spread[1] * |log10 ratio|``. No log10 ratio is predicted beyond
    ``most``, the largest for which there were enough calibration pairs.
    """

    weights: tuple[float, float]
    spread: tuple[float, float]
    most: float
    residuals: Residuals

    def predict(self, median: Array, role: Array) -> Array:
        """Log10 ratios from the differences of log10 medians and of change roles, ``(pairs,)`` each."""
        return np.clip(self.weights[0] * median + self.weights[1] * role, -self.most, self.most)

    def size(self, ratio: Array) -> Array:
        """The expected size of the error of log10 ratios."""
        return self.spread[0] + self.spread[1] * np.abs(ratio)


def ratio_quantiles(model: RatioModel, median: float, role: float) -> tuple[float, ...]:
    """Calibrated quantiles at ``LEVELS`` of the ratio; equal texts have the ratio 1 without doubt."""
    place = model.predict(np.array([median]), np.array([role]))
    size = model.size(place)
    logs = np.clip(place + size * np.asarray(model.residuals.quantiles), -300, 300)
    return tuple(float(10**log) for log in logs)


def ratio_task(basis: str, metric: str) -> str:
    """The name of the calibration of ratios of a basis and metric."""
    return f"changes/{basis}/{metric}"


def cost_ratio(
    basis: Basis, metric: Metric, device: str | None, model_id: str, model: RatioModel, median: float, role: float
) -> CostRatio:
    """The ratio from the differences of log10 medians and of change roles."""
    quantiles = ratio_quantiles(model, median, role)
    source = CalibrationSource(ratio_task(basis, metric))
    ratio_bands = bands(quantiles, model.residuals.groups, model.residuals.rows, source)
    return CostRatio(basis, metric, device, model_id, quantiles[MEDIAN], ratio_bands, quantiles)


def log_median(median: float, floor: float) -> float:
    """Log10 of a median; one at or below the floor counts as the floor."""
    return math.log10(max(median, floor, 1e-12))
