"""Outcome scales (log-spaced bins), and the conformal calibration of bands on them, by whole groups.

Outcome 0 is "not above the floor", outcomes 1..K are bins of log10(value). Edges follow the data half way: the density
that they equalise is the mean of the observed one and a flat one over the log range, so the bulk (megabytes of a
language's runtime) is resolved finely and the tails stay log-spaced.

A band of coverage c is the central interval of the predicted distribution whose probability is not c but the level t
at which the share c of held-out values was covered. Scores live on the probability axis, ``|2 F(y) - 1|``, so the
band keeps the shape of the distribution; a value at or below the floor is covered as soon as the band's lower end
reaches the floor. Tasks with fewer than ``MIN_GROUPS`` held-out groups use their parent's level. (Conformalised
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

Array = npt.NDArray[np.float64]
BINS = 64
COVERAGES = (0.8, 0.9)
# The coverages of all central intervals between a prediction's quantiles, narrow to wide.
INTERVALS = tuple(round(2 * level - 1, 6) for level in LEVELS[MEDIAN + 1 :])
MIN_GROUPS = 30
_WIDEST = 0.999
_MOST_ROWS = 2**53


@dataclass(frozen=True, slots=True)
class Scale:
    """The outcomes of one task: ``floor`` in SI units (0: none), ``edges (K + 1,)`` in log10 SI units."""

    floor: float
    edges: Array

    def position(self, value: npt.ArrayLike) -> Array:
        """The position of values on the outcome axis: -0.5 at or below the floor, else 0..K along the bins."""
        values = np.asarray(value, dtype=np.float64)
        logs = np.log10(np.maximum(values, 1e-300))
        positions = np.interp(logs, self.edges, np.arange(len(self.edges), dtype=np.float64))
        return np.where(values <= self.floor, -0.5, positions)

    def share_below(self, value: float) -> float:
        """The share of the training values above the floor that are below a value (SI units).

        :func:`fit_scale` gives each bin the same share of a half observed, half flat density, so the observed share is
        known at each edge; between edges it is interpolated.
        """
        flat = (self.edges - self.edges[0]) / (self.edges[-1] - self.edges[0])
        shares = np.maximum.accumulate(np.clip(2 * np.linspace(0, 1, len(flat)) - flat, 0, 1))
        return float(np.interp(np.log10(max(value, 1e-300)), self.edges, shares))

    def quantiles(self, probabilities: Array, levels: npt.ArrayLike) -> Array:
        """Quantiles of distributions, 0 where they are at or below the floor.

        Args:
            probabilities: ``(rows, K + 1)``, each row sums to 1.
            levels: ``(rows,)`` or ``(rows, n)`` or ``(n,)`` within 0..1.

        Returns:
            ``(rows, n)`` in SI units, monotone in the level.
        """
        wanted = np.asarray(levels, dtype=np.float64)
        wanted = np.broadcast_to(
            wanted if wanted.ndim == 2 else wanted[None, :], (len(probabilities), wanted.shape[-1])
        )
        cumulative = np.cumsum(probabilities, axis=1)
        cumulative /= cumulative[:, -1:]
        # Position of the outcome in which each level is reached, then linear within the bin.
        index = np.minimum((cumulative[:, None, :] < wanted[:, :, None]).sum(-1), len(self.edges) - 1)
        upper = np.take_along_axis(cumulative, index, axis=1)
        lower = np.where(index > 0, np.take_along_axis(cumulative, np.maximum(index - 1, 0), axis=1), 0.0)
        share = np.clip((wanted - lower) / np.maximum(upper - lower, 1e-12), 0.0, 1.0)
        left = self.edges[np.maximum(index - 1, 0)]
        right = self.edges[index]
        return np.where(index == 0, 0.0, 10 ** (left + share * (right - left)))


def fit_scale(values: npt.ArrayLike, floor: float, bins: int = BINS) -> Scale:
    """The scale of a task from its training values (SI units)."""
    data = np.asarray(values, dtype=np.float64)
    logs = np.log10(data[data > floor]) if np.any(data > floor) else np.array([0.0])
    low = np.log10(floor) if floor > 0 else float(np.quantile(logs, 0.0005)) - 0.1
    high = float(np.quantile(logs, 0.9995)) + 0.3
    grid = np.linspace(low, max(high, low + 0.5), 2001)
    observed = np.searchsorted(np.sort(logs), grid, side="right") / len(logs)
    flat = np.linspace(0, 1, len(grid))
    mixed = 0.5 * (observed - observed[0]) / max(observed[-1] - observed[0], 1e-9) + 0.5 * flat
    return Scale(floor, np.interp(np.linspace(0, 1, bins + 1), mixed, grid))


@dataclass(frozen=True, slots=True)
class TaskCalibration:
    """The calibrated levels of one task, one for each of ``INTERVALS``, and how much data they rest on."""

    name: str
    levels: tuple[float, ...]
    groups: int
    rows: int

    def __post_init__(self) -> None:
        if len(self.levels) != len(INTERVALS) or not all(0 <= level <= 1 for level in self.levels):
            raise ValueError(f"a calibration needs {len(INTERVALS)} levels from 0 to 1")
        if not (0 <= self.groups <= _MOST_ROWS and 0 <= self.rows <= _MOST_ROWS):
            raise ValueError("groups and rows must be numbers of rows")

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
    """The tasks that may calibrate a query, the most specific first."""
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
    """Levels by task, backing off to parents."""

    def __init__(self, levels: Mapping[str, TaskCalibration]) -> None:
        self._levels = dict(levels)

    @classmethod
    def fit(cls, names: Sequence[Sequence[str]], scores: Array, groups: npt.NDArray[np.str_]) -> Calibration:
        """Fit from held-out rows; ``names[i]`` are the tasks that row i belongs to, the most specific first."""
        members: dict[str, list[int]] = {}
        for row, tasks in enumerate(names):
            for name in tasks:
                members.setdefault(name, []).append(row)
        levels = {}
        for name, rows in members.items():
            groups_of_task = groups[rows]
            found = tuple(conformal_level(scores[rows], groups_of_task, coverage) for coverage in INTERVALS)
            levels[name] = TaskCalibration(name, found, len(np.unique(groups_of_task)), len(rows))
        return cls(levels)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        """Read what :meth:`to_json` wrote.

        Raises:
            ValueError: a field is missing or of another type; the message names it.
        """
        return cls(msgspec.convert(data, dict[str, TaskCalibration]))

    def to_json(self) -> dict[str, Any]:
        """The levels as JSON values."""
        return {name: asdict(level) for name, level in sorted(self._levels.items())}

    def exactly(self, name: str) -> TaskCalibration | None:
        """The level of that name if enough groups are behind it."""
        level = self._levels.get(name)
        return level if level is not None and level.groups >= MIN_GROUPS else None

    def lookup(self, basis: str, language: str, metric: str, device: str) -> TaskCalibration | None:
        """The most specific level with enough groups, else the widest there is; None for an unknown basis."""
        found = None
        for name in parents(basis, language, metric, device):
            level = self._levels.get(name)
            if level is not None:
                found = level
                if level.groups >= MIN_GROUPS:
                    return level
        return found
