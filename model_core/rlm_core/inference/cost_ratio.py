"""How much dearer a text became: the ratio of a cost after and before an edit, with a band of its own.

The errors of two predictions of nearly the same text are nearly the same, so a ratio is known far better than either
value. It is predicted in log10 from the difference of the two medians and, for programs, from the difference of the
wide part's change role, which was fitted inside problems: what one solution costs beside another one. Its band comes
from pairs of texts, as in :mod:`rlm_core.inference.residuals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rlm_core.types import MEDIAN, Abstention, Band, Basis, CalibrationSource, Metric, exceedance

from .calibration import bands
from .residuals import Residuals

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChangeModel:
    """Log10 ratio = ``weights`` (median, change role) times the differences; its error is ``spread`` times residuals.

    The expected size of an error is ``spread[0] + spread[1] * |log10 ratio|``. No ratio is predicted beyond ``most``,
    the largest that the calibration pairs held in any number.
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


@dataclass(frozen=True, slots=True)
class Change:
    """Cost after an edit over cost before it, or why it is not known. ``quantiles`` are those at ``LEVELS``."""

    basis: Basis
    metric: Metric
    device: str | None
    model: str
    ratio: float | None
    bands: tuple[Band, ...]
    quantiles: tuple[float, ...] = ()
    abstained: Abstention | None = None

    def above(self, ratio: float) -> float:
        """The calibrated probability of a larger ratio; NaN when the model abstains."""
        return exceedance(self.quantiles, ratio)


def change_quantiles(model: ChangeModel, median: float, role: float) -> tuple[float, ...]:
    """Calibrated quantiles at ``LEVELS`` of the ratio; equal texts have the ratio 1 without doubt."""
    place = model.predict(np.array([median]), np.array([role]))
    size = model.size(place)
    logs = np.clip(place + size * np.asarray(model.residuals.quantiles), -300, 300)
    return tuple(float(10**log) for log in logs)


def change_name(basis: str, metric: str) -> str:
    """What the calibration of changes of a basis and metric is called."""
    return f"changes/{basis}/{metric}"


def answered(
    basis: Basis, metric: Metric, device: str | None, model_id: str, model: ChangeModel, median: float, role: float
) -> Change:
    """A change from the differences of log10 medians and change roles."""
    found = change_quantiles(model, median, role)
    source = CalibrationSource(change_name(basis, metric))
    known = bands(found, model.residuals.groups, model.residuals.rows, source)
    return Change(basis, metric, device, model_id, found[MEDIAN], known, found)


def log_median(median: float, floor: float) -> float:
    """Log10 of a median; one at or below the floor counts as the floor."""
    return math.log10(max(median, floor, 1e-12))
