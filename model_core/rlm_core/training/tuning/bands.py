"""Bands of a tuned slice, calibrated on the team's held-out groups.

With ``MIN_GROUPS`` of them the levels are theirs. With fewer the model's own levels count as ten more groups, so that
three modules do not make a band.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rlm_core.inference.calibration import INTERVALS, MIN_GROUPS, Calibration, Level, conformal_level, parents
from rlm_core.inference.residuals import Residuals, fit_residuals
from rlm_core.types import LEVELS

from .draft import Draft
from .material import Array

Names = npt.NDArray[np.str_]
COVERAGE = 0.8
_PRIOR_GROUPS = 10


class Bands(Protocol):
    """How the bands of a slice are read off the scores of held-out rows."""

    def before(self, scores: Array) -> npt.NDArray[np.bool_]:
        """Whether the model's own 80 % bands cover rows with these scores."""
        ...

    def after(self, scores: Array, groups: Names, held: Array) -> npt.NDArray[np.bool_]:
        """Whether bands that are calibrated on ``scores`` of ``groups`` cover rows with the scores ``held``."""
        ...

    def put(self, draft: Draft, scores: Array, groups: Names, devices: Names) -> None:
        """Write the calibration of all held-out rows into a model."""
        ...


class HeadBands:
    """Levels of central intervals, of a slice that the query head answers."""

    def __init__(self, name: str, calibration: Calibration, device: str) -> None:
        self._basis, self._language, self._metric = name.split("/")
        self._own = calibration
        self._device = device

    def before(self, scores: Array) -> npt.NDArray[np.bool_]:
        """See :class:`Bands`."""
        level = self._shipped(self._device)
        return scores <= level.at(COVERAGE) if level is not None else np.zeros(len(scores), bool)

    def after(self, scores: Array, groups: Names, held: Array) -> npt.NDArray[np.bool_]:
        """See :class:`Bands`."""
        return held <= self._level("", scores, groups, self._device).at(COVERAGE)

    def put(self, draft: Draft, scores: Array, groups: Names, devices: Names) -> None:
        """See :class:`Bands`."""
        draft.levels |= self.levels(draft.levels, scores, groups, devices)

    def levels(self, known: Mapping[str, Any], scores: Array, groups: Names, devices: Names) -> dict[str, Any]:
        """The new levels as JSON values, of the slice and of devices that are ``known`` or have groups enough."""
        found: dict[str, Level] = {}
        for device in np.unique(devices):
            mine = devices == device
            name, *_ = parents(self._basis, self._language, self._metric, str(device))
            if name in known or len(np.unique(groups[mine])) >= MIN_GROUPS:
                found[name] = self._level(name, scores[mine], groups[mine], str(device))
        _, name, *_ = parents(self._basis, self._language, self._metric, "")
        found[name] = self._level(name, scores, groups, "")
        return Calibration(found).to_json()

    def _shipped(self, device: str) -> Level | None:
        return self._own.lookup(self._basis, self._language, self._metric, device)

    def _level(self, name: str, scores: Array, groups: Names, device: str) -> Level:
        count, before = len(np.unique(groups)), self._shipped(device)
        own = np.array([conformal_level(scores, groups, coverage) for coverage in INTERVALS])
        if before is None or count >= MIN_GROUPS:
            return Level(name, tuple(own.tolist()), count, len(scores))
        mixed = _mixed(own, np.array(before.levels), count)
        return Level(name, tuple(mixed.tolist()), before.groups + count, before.rows + len(scores))


class ForestBands:
    """Quantiles of residuals, of a forest that answers alone."""

    def __init__(self, key: str, residuals: Residuals) -> None:
        self._key, self._own = key, residuals

    def before(self, scores: Array) -> npt.NDArray[np.bool_]:
        """See :class:`Bands`."""
        return _within(self._own, scores)

    def after(self, scores: Array, groups: Names, held: Array) -> npt.NDArray[np.bool_]:
        """See :class:`Bands`."""
        return _within(self._fitted(scores, groups), held)

    def put(self, draft: Draft, scores: Array, groups: Names, devices: Names) -> None:
        """See :class:`Bands`."""
        draft.residuals[self._key] = self._fitted(scores, groups)

    def _fitted(self, scores: Array, groups: Names) -> Residuals:
        own = fit_residuals(scores, groups, self._own.axis)
        if own.groups >= MIN_GROUPS:
            return own
        mixed = _mixed(np.array(own.quantiles), np.array(self._own.quantiles), own.groups)
        groups_, rows = self._own.groups + own.groups, self._own.rows + own.rows
        return Residuals(tuple(round(float(value), 4) for value in mixed), groups_, rows, self._own.axis)


def _mixed(own: Array, before: Array, groups: int) -> Array:
    share = groups / (groups + _PRIOR_GROUPS)
    return share * own + (1 - share) * before


def _within(residuals: Residuals, scores: Array) -> npt.NDArray[np.bool_]:
    low, high = residuals.quantiles[LEVELS.index(0.1)], residuals.quantiles[LEVELS.index(0.9)]
    covered: npt.NDArray[np.bool_] = (low <= scores) & (scores <= high)
    return covered
