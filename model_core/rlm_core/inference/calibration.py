"""Conformal calibration of bands, on whole groups.

A band of coverage c is the central interval of the predicted distribution whose probability is not c but the level t
at which the share c of held-out values was covered. Scores live on the probability axis, ``|2 F(y) - 1|``, so the
band keeps the shape of the distribution; a value at or below the floor is covered as soon as the band's lower end
reaches the floor. Slices with fewer than ``MIN_GROUPS`` held-out groups use their parent's level. (Conformalised
quantiles: arXiv 1905.03222.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rlm_core.types import LEVELS, MEDIAN, Band, CalibrationSource

from .bins import Scale

Array = npt.NDArray[np.float64]
COVERAGES = (0.8, 0.9)
# The coverages of all central intervals between a prediction's quantiles, narrow to wide.
INTERVALS = tuple(round(2 * level - 1, 6) for level in LEVELS[MEDIAN + 1 :])
MIN_GROUPS = 30
_WIDEST = 0.999


@dataclass(frozen=True, slots=True)
class Level:
    """The calibrated levels of one slice, one for each of ``INTERVALS``, and how much data they rest on."""

    name: str
    levels: tuple[float, ...]
    groups: int
    rows: int

    def at(self, coverage: float) -> float:
        """The level of the raw central interval that covers the share ``coverage``, one of ``INTERVALS``."""
        return self.levels[INTERVALS.index(coverage)]

    def raw_levels(self) -> list[float]:
        """Where the raw distribution has the calibrated quantiles at ``LEVELS``."""
        return [*((1 - t) / 2 for t in reversed(self.levels)), 0.5, *((1 + t) / 2 for t in self.levels)]


def bands(quantiles: Sequence[float], groups: int, rows: int, source: CalibrationSource) -> tuple[Band, ...]:
    """The bands of ``COVERAGES`` from calibrated quantiles at ``LEVELS``; the rest says what they rest on."""
    found = []
    for coverage in COVERAGES:
        out = INTERVALS.index(coverage) + 1
        found.append(Band(quantiles[MEDIAN - out], quantiles[MEDIAN + out], coverage, groups, rows, source))
    return tuple(found)


def parents(basis: str, language: str, metric: str, device: str) -> list[str]:
    """The slices that may calibrate a query, the most specific first."""
    return [f"{basis}/{language}/{metric}/{device}", f"{basis}/{language}/{metric}", f"{basis}/{metric}", basis]


def scores(probabilities: Array, scale: Scale, values: Array) -> Array:
    """Nonconformity of values under distributions ``(rows, K + 1)``: the smallest level whose band covers them."""
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative /= cumulative[:, -1:]
    place = scale.position(values)
    rows = np.arange(len(values))
    index = np.clip(np.floor(place).astype(int), 0, len(scale.edges) - 2)
    reached = cumulative[rows, index] + np.clip(place - index, 0, 1) * probabilities[rows, index + 1]
    at_floor = np.maximum(0.0, 1 - 2 * cumulative[:, 0])
    return np.where(place < 0, at_floor, np.abs(2 * np.clip(reached, 0, 1) - 1))


def conformal_level(scores: Array, groups: npt.NDArray[np.str_], coverage: float) -> float:
    """The level that covers the wanted share; a group counts by the square root of its size."""
    _, inverse, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights = 1 / np.sqrt(sizes[inverse])
    order = np.argsort(scores)
    cumulative = np.cumsum(weights[order])
    # The future row's own weight at infinity, as in split conformal prediction, taken as the mean one.
    wanted = coverage * (cumulative[-1] + weights.mean())
    index = int(np.searchsorted(cumulative, wanted))
    return float(min(scores[order[min(index, len(order) - 1)]], _WIDEST))


class Calibration:
    """Levels by slice, with backing off to parents."""

    def __init__(self, levels: Mapping[str, Level]) -> None:
        self._levels = dict(levels)

    @classmethod
    def fit(cls, names: Sequence[Sequence[str]], scores: Array, groups: npt.NDArray[np.str_]) -> Calibration:
        """Fit from held-out rows; ``names[i]`` are the slices that row i belongs to, the most specific first."""
        members: dict[str, list[int]] = {}
        for row, slices in enumerate(names):
            for name in slices:
                members.setdefault(name, []).append(row)
        levels = {}
        for name, rows in members.items():
            mine = groups[rows]
            found = tuple(conformal_level(scores[rows], mine, coverage) for coverage in INTERVALS)
            levels[name] = Level(name, found, len(np.unique(mine)), len(rows))
        return cls(levels)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        """Read what :meth:`to_json` wrote.

        Raises:
            ValueError: a field is missing or of another type; the message names it.
        """
        return cls(msgspec.convert(data, dict[str, Level]))

    def to_json(self) -> dict[str, Any]:
        """The levels as JSON values."""
        return {name: asdict(level) for name, level in sorted(self._levels.items())}

    def lookup(self, basis: str, language: str, metric: str, device: str) -> Level | None:
        """The most specific level with enough groups, else the widest there is; None for an unknown basis."""
        found = None
        for name in parents(basis, language, metric, device):
            level = self._levels.get(name)
            if level is not None:
                found = level
                if level.groups >= MIN_GROUPS:
                    return level
        return found
