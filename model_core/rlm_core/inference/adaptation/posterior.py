"""The regression behind an adapted device: a Gaussian process on measurements that come in groups, and without each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
# Noise to signal of the correction, from "trust every point" to "keep the mean and its offset".
_PENALTIES = np.logspace(-3, 1, 9)
# The variance of what a group's points have in common, in units of that of a point's noise.
_GROUP_SHARES = (0.0, 1.0, 10.0, 100.0)
_NEGLIGIBLE = 1e-4  # weight of a size, beside the likeliest


@dataclass(frozen=True, slots=True)
class Solution:
    """Dual coefficients ``(..., n)``, the offset ``(...)`` and what points of each group share ``(..., groups)``."""

    duals: Array
    offsets: Array
    effects: Array


@dataclass(frozen=True, slots=True)
class Posterior:
    """The solution for all points, those without each point, and those without each group.

    A single group cannot be left out: then the last are those without each point too.
    """

    whole: Solution
    without_point: Solution
    without_group: Solution


def posterior(gram: Array, rest: Array, group: Indices) -> Posterior:
    """A Gaussian process with a flat offset, noise and an effect of each group, averaged over the sizes of both.

    They weigh by their evidence, the restricted likelihood (Rasmussen and Williams, Gaussian Processes for Machine
    Learning, section 2.7). ``gram (n, n)``, ``rest (n,)``; ``group (n,)`` numbers the groups from 0.
    """
    n, count = len(rest), int(group.max()) + 1
    members = np.eye(count)[group]
    point = np.arange(n)
    shares = _GROUP_SHARES if 1 < count < n else (0.0,)
    sizes = list(product(_PENALTIES, shares))
    same = members @ members.T

    def covariance(penalty: float, share: float) -> Array:
        return gram + penalty * (np.eye(n) + share * same)

    evidence = np.array([_evidence(covariance(*size), rest) for size in sizes])
    weight = np.exp(evidence - evidence.max())
    kept = np.flatnonzero(weight > _NEGLIGIBLE)
    found = [
        _solutions(covariance(*sizes[i]), rest, math.prod(sizes[i]) * members, (point, group if count > 1 else point))
        for i in kept
    ]
    share = weight[kept] / weight[kept].sum()
    parts = [np.tensordot(share, np.array(own), 1) for own in zip(*found, strict=True)]
    return Posterior(Solution(*(part[0] for part in parts[:3])), Solution(*parts[3:6]), Solution(*parts[6:]))


def _projected(covariance: Array) -> tuple[Array, Array]:
    """The inverse covariance with a flat offset taken out ``(n, n)``, and the sums of its rows before ``(n,)``."""
    inverse = np.linalg.inv(covariance)
    rows = inverse.sum(1)
    return inverse - np.outer(rows, rows) / rows.sum(), rows


def _evidence(covariance: Array, rest: Array) -> float:
    """The restricted log-likelihood, the size of all variances together set to its best."""
    projected, rows = _projected(covariance)
    misfit = max(float(rest @ projected @ rest), 1e-12)
    volume = float(np.linalg.slogdet(covariance)[1])
    return -0.5 * (volume + math.log(rows.sum()) + (len(rest) - 1) * math.log(misfit))


def _solutions(covariance: Array, rest: Array, members: Array, ways: tuple[Indices, ...]) -> list[Array]:
    """Duals, offsets and effects of all points, then without each part of each way; ``members`` scale the effects."""
    projected, rows = _projected(covariance)
    dual = projected @ rest
    found = [dual[None], np.array([rows @ rest / rows.sum()]), dual[None] @ members]
    for apart in ways:
        duals = _without(projected, dual, apart)
        # What is left of a point besides its column, noise and group is the offset, the same for all others.
        left = rest - duals @ covariance
        kept = apart[None, :] != np.arange(len(duals))[:, None]
        found += [duals, np.where(kept, left, 0).sum(1) / kept.sum(1), duals @ members]
    return found


def _without(projected: Array, dual: Array, apart: Indices) -> Array:
    """The dual coefficients without the points of each part, in closed form, ``(parts, n)``.

    As without one point in Rasmussen and Williams, section 5.4.2, with a block in the place of a diagonal entry.
    """
    result = np.empty((int(apart.max()) + 1, len(dual)))
    for number in range(len(result)):
        own = np.flatnonzero(apart == number)
        result[number] = dual - projected[:, own] @ np.linalg.solve(projected[np.ix_(own, own)], dual[own])
    return result
