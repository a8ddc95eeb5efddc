"""Answered rows -> the numbers of the pictures: calibration, coverage by group, errors by slice, surprises."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rlm_core.types import LEVELS

from .answers import Answered

Array = npt.NDArray[np.float64]
_Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of ``rows`` values inside their 80 % bands, with a 95 % interval of that share (Wilson)."""

    name: str
    rows: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SliceSummary:
    """How a slice is answered: rank correlation (None without a meaning), median factor of error, coverage."""

    name: str
    rows: int
    groups: int
    spearman: float | None
    error: float
    coverage: float


def by_slice(answered: Sequence[Answered]) -> dict[str, list[Answered]]:
    """The rows of each basis and metric, in the order of their names."""
    return _grouped(answered, lambda one: one.slice)


def calibration(answered: Sequence[Answered]) -> dict[str, list[tuple[float, float]]]:
    """Of each slice the share of measured values below each predicted quantile: ``(level, share)``.

    A value equal to the quantile, as at the floor of what is measured, counts half.
    """
    found = {}
    for name, mine in by_slice(answered).items():
        values = np.array([one.measured for one in mine])
        floors = np.array([one.prediction.floor for one in mine])
        quantiles = np.maximum(np.array([one.prediction.quantiles for one in mine]), floors[:, None])
        below = (values[:, None] < quantiles) + 0.5 * (values[:, None] == quantiles)
        found[name] = list(zip(LEVELS, below.mean(axis=0).tolist(), strict=True))
    return found


def coverage_by_group(answered: Sequence[Answered], most: int = 30) -> list[Coverage]:
    """Coverage of each group and slice, those with most rows first, at most ``most``."""
    parts = _grouped(answered, lambda one: f"{one.row.group}, {one.slice}")
    found = [coverage(name, mine) for name, mine in parts.items()]
    return sorted(found, key=lambda one: (-one.rows, one.name))[:most]


def coverage(name: str, mine: Sequence[Answered]) -> Coverage:
    """The coverage of some rows."""
    count = len(mine)
    share = sum(one.is_covered for one in mine) / count
    centre, spread = share + _Z**2 / (2 * count), _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    whole = 1 + _Z**2 / count
    return Coverage(name, count, share, max((centre - spread) / whole, 0.0), min((centre + spread) / whole, 1.0))


def slice_summaries(answered: Sequence[Answered]) -> list[SliceSummary]:
    """The figures of each slice."""
    found = []
    for name, mine in by_slice(answered).items():
        errors = [abs(math.log10(max(one.factor, 1e-12))) for one in mine]
        predicted, measured = (np.array([getattr(one, which) for one in mine]) for which in ("median", "measured"))
        found.append(
            SliceSummary(
                name,
                len(mine),
                len({one.row.group for one in mine}),
                rank_correlation(predicted, measured),
                10 ** float(np.median(errors)),
                coverage(name, mine).share,
            )
        )
    return found


def surprises(answered: Sequence[Answered], most: int = 200) -> list[Answered]:
    """The rows outside their bands that were missed by the largest factor, up or down."""
    outside = [one for one in answered if not one.is_covered]
    return sorted(outside, key=lambda one: -abs(math.log(max(one.factor, 1e-12))))[:most]


def rank_correlation(first: Array, second: Array) -> float | None:
    """Spearman's rank correlation; None when either is constant."""
    if len(first) < 3 or len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return None
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Array) -> Array:
    """Ranks, those of equal values averaged."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: Array = np.cumsum(counts) - (counts - 1) / 2
    return mean[inverse]


def _grouped(answered: Sequence[Answered], key: Callable[[Answered], str]) -> dict[str, list[Answered]]:
    found: dict[str, list[Answered]] = defaultdict(list)
    for one in answered:
        found[key(one)].append(one)
    return dict(sorted(found.items()))
