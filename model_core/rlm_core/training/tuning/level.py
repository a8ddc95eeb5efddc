"""A correction of level and slope for what has too few rows for more: ``log10 y = slope * log10 prediction + offset``.

It is the fit of ``adaptation`` with the model as the one known device, so few rows move little. It is written
into the model by moving its scales, under which every distribution keeps its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rlm_core.inference.adaptation.fit import MIN_MEASUREMENTS, fit_device
from rlm_core.inference.card import TaskCard
from rlm_core.inference.ngram_ridge import METRICS, NgramRidge
from rlm_core.inference.trees import Forest

from .material import Array

_LEAST_SLOPE = 0.1
__all__ = ["MIN_MEASUREMENTS", "Level", "fit_level"]


@dataclass(frozen=True, slots=True)
class Level:
    """The map from the model's log10 values to the team's; ``slope`` is above 0."""

    slope: float
    offset: float

    def of(self, logs: Array) -> Array:
        """The map."""
        return self.slope * logs + self.offset

    def slice(self, entry: TaskCard) -> TaskCard:
        """A slice with its scale and linear terms moved."""
        floor = np.log10(entry.scale.floor) if entry.scale.floor else -np.inf
        edges = np.maximum(self.of(entry.scale.edges), floor)
        calendar = tuple(self.slope * value for value in entry.calendar)
        return TaskCard(
            entry.name, replace(entry.scale, edges=edges), self.slope * entry.intercept + self.offset, calendar
        )

    def part(self, part: NgramRidge, metric: str) -> NgramRidge:
        """A wide part with the weights of one metric moved."""
        largest = part.largest.copy()
        largest[:, METRICS.index(metric)] *= np.float32(self.slope)
        return replace(part, largest=largest)

    def forest(self, forest: Forest) -> Forest:
        """A forest of log10 values, moved."""
        offset = forest.offset.astype(np.float64)
        offset[0] = offset[0] * self.slope + self.offset
        offset[2] *= self.slope
        return replace(forest, value=forest.value * np.float32(self.slope), offset=offset.astype(np.float32))

    def spread(self, forest: Forest) -> Forest:
        """A forest of log10 sizes of residuals, moved."""
        offset = forest.offset + np.array([np.log10(self.slope), 0, 0], np.float32)
        return replace(forest, offset=offset.astype(np.float32))


def fit_level(predicted: Array, actual: Array) -> Level:
    """The correction from log10 predictions and values, ``(rows,)`` each, at least ``MIN_MEASUREMENTS`` of them."""
    found = fit_device(predicted[:, None], actual)
    slope = float(found.weights[0])
    if slope < _LEAST_SLOPE:
        return Level(1.0, float(np.median(actual - predicted)))
    return Level(slope, found.intercept)
