"""A new device from a few measurements: the known devices' predictions of a text -> its own value, with a band.

All values are log10 of SI units. The new device is the weighted mean of the known ones plus an offset, plus a ridge
correction whose penalties are averaged by their evidence, so that five points move little and a hundred move much;
a hundred points of one text, which share what is special about it, move little too.
Bands are jackknife+ intervals (arXiv 1905.02928) that leave out a text with all its measurements, since a user asks
about texts that were not measured. Below ten texts the model's own band widens them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
MIN_MEASUREMENTS = 5
SMALLEST = 1e-12
"""Nothing that we measure is smaller, in seconds or bytes."""
# A change of slope along the mean is likelier than a change among devices: both have this ratio of prior variances.
_SLOPE = 3.0
# What the text adds to the devices is likely small: on NAS-Bench-201 0.1 to 0.5 are equally good, and 1 is worse.
_TEXT = 0.2
# A column that hardly varies over the measured texts must not dominate the mean when columns are scaled alike.
_SMALLEST_SCALE = 0.25
# From this many groups on both 80 % and 90 % have a separate order statistic.
ENOUGH_FOR_BANDS = 10
_ROUNDING = 1e-9  # of sums of shares
# Noise to signal of the correction, from "trust every point" to "keep the mean and its offset".
_PENALTIES = np.logspace(-3, 1, 9)
# The variance of what a group's points have in common, in units of that of a point's noise.
_GROUP_SHARES = (0.0, 1.0, 10.0, 100.0)
_NEGLIGIBLE = 1e-4  # weight of a size relative to the likeliest


@dataclass(frozen=True, slots=True)
class Rest:
    """The map without each part of the measurements, and what it misses there.

    ``weights (parts, columns)``, ``intercepts (parts,)``; ``residuals (n,)``, measured minus predicted without it.
    """

    weights: Array
    intercepts: Array
    residuals: Array


@dataclass(frozen=True, slots=True)
class DeviceFit:
    """A linear map from columns to the new device's log10 value, and the same map with measurements left out.

    ``weights (columns,)`` and ``intercept`` predict. The first ``devices`` columns are the known devices; more columns
    describe the text, and the last ones are for texts with several measurements: what each costs beyond the rest.
    ``centre`` replaces an unknown value of a column that is not such a text. ``texts (n,)`` numbers the
    measurements' texts from 0, those with several first. ``without_text`` leaves a text out (of a single text, a
    measurement), and has no columns of texts; ``without_row`` leaves a measurement out, where a text has several.
    ``is_sum``: the columns are SI units, and the map gives the value, not its logarithm (:mod:`.sum_fit`).
    """

    devices: int
    centre: Array
    weights: Array
    intercept: float
    texts: Indices
    without_text: Rest
    without_row: Rest | None
    is_sum: bool = False

    @property
    def n(self) -> int:
        """The number of measurements of the fit."""
        return len(self.texts)

    @property
    def text_count(self) -> int:
        """The number of measured texts."""
        return int(self.texts.max()) + 1

    @property
    def several(self) -> int:
        """The number of texts with several measurements."""
        return len(self.weights) - len(self.centre)

    @property
    def typical_error(self) -> float:
        """The median absolute error of a measurement whose text was left out, in log10."""
        return float(np.median(np.abs(self.without_text.residuals)))

    def predict(self, known: Array, extra: Array | None = None, text: int | None = None) -> Array:
        """log10 values ``(rows,)`` from the known devices' ``(rows, devices)`` and text columns ``(rows, extra)``.

        ``text`` is the number of the text with several measurements that all rows are about, None for another.
        """
        return self._logs(self._columns(known, extra, text) @ self.weights + self.intercept)

    def _logs(self, mapped: Array) -> Array:
        return np.log10(np.maximum(mapped, SMALLEST)) if self.is_sum else mapped

    def band(
        self,
        known: Array,
        coverage: float,
        own: Array | float = 0.0,
        extra: Array | None = None,
        text: int | None = None,
    ) -> tuple[Array, Array]:
        """Lower and upper ends ``(rows,)`` in log10 that cover a new value with probability ``coverage``.

        Of a text with several measurements by what each measurement is missed by without it; of another one without
        its text, all texts counting alike. ``own`` is half the width of the model's band, in log10. With fewer than
        ``ENOUGH_FOR_BANDS`` texts (measurements) it counts for the missing ones where it is the wider: squared
        half-widths are averaged as variances are under a conjugate prior (Gelman et al., Bayesian Data Analysis,
        section 2.6).
        """
        columns = self._columns(known, extra, text)
        middle = self._logs(columns @ self.weights + self.intercept)
        rest, count = self.without_text, self.text_count
        if text is not None and self.without_row is not None:
            rest, count = self.without_row, self.n
        apart = np.arange(self.n) if len(rest.weights) == self.n else self.texts
        left_out = self._logs(columns[:, : rest.weights.shape[1]] @ rest.weights.T + rest.intercepts)[:, apart]
        errors = np.abs(rest.residuals)
        reach, stretch = _reach(count, coverage)
        share = count / len(rest.weights) / np.bincount(apart)[apart]
        low = middle + _reached(errors - left_out, share, reach)
        high = _reached(left_out + errors, share, reach) - middle
        missing = max(ENOUGH_FOR_BANDS - count, 0)

        def blended(half: Array) -> Array:
            half = stretch * np.maximum(half, 0)
            result: Array = np.sqrt((count * half**2 + missing * np.maximum(half, own) ** 2) / (count + missing))
            return result

        return middle - blended(low), middle + blended(high)

    def _columns(self, known: Array, extra: Array | None, text: int | None) -> Array:
        columns = joined(known, extra)
        columns = np.where(np.isfinite(columns), columns, self.centre)
        texts = np.zeros((len(columns), self.several))
        if text is not None:
            texts[:, text] = 1.0
        return np.concatenate([columns, texts], axis=1)


def joined(known: Array, extra: Array | None) -> Array:
    """Device columns and text columns side by side, ``(rows, columns)``."""
    parts = [np.asarray(known, np.float64)] + ([] if extra is None else [np.asarray(extra, np.float64)])
    return np.concatenate(parts, axis=1)


def _reach(groups: int, coverage: float) -> tuple[float, float]:
    """Return how many groups' left-out errors a band must contain to cover, and the factor by which to stretch it.

    Where there are too few, all of them cover g / (g + 1) and are stretched to ``coverage`` as a normal error.
    """
    wanted = coverage * (groups + 1)
    if wanted <= groups + _ROUNDING:
        return wanted, 1.0
    quantile = NormalDist().inv_cdf
    return float(groups), quantile((1 + coverage) / 2) / quantile((1 + groups / (groups + 1)) / 2)


def _reached(values: Array, share: Array, wanted: float) -> Array:
    """In each row of ``values (rows, n)``, the smallest one up to which the shares ``(n,)`` sum up to ``wanted``."""
    order = np.argsort(values, axis=1)
    total = np.cumsum(share[order], axis=1)
    place = np.minimum((total < wanted - _ROUNDING).sum(1), values.shape[1] - 1)
    rows = np.arange(len(values))
    result: Array = values[rows, order[rows, place]]
    return result


@dataclass(frozen=True, slots=True)
class _Basis:
    """How columns become the parts of the kernel: ``columns - centre`` times ``parts (columns, parts)``."""

    centre: Array
    prior: Array
    parts: Array


def _basis(columns: Array, devices: int) -> _Basis:
    """The prior mean's weights (devices sum to 1, each device's spread counts alike) and the kernel's parts."""
    counts = np.isfinite(columns).sum(0)
    centre = np.where(np.isfinite(columns), columns, 0).sum(0) / np.maximum(counts, 1)
    centred = np.where(np.isfinite(columns), columns - centre, 0.0)
    spread = centred.std(0)
    device_spread, extra_spread = spread[:devices], spread[devices:]
    scale = np.maximum(device_spread, max(_SMALLEST_SCALE * float(np.median(device_spread)), 1e-9))
    mean = 1 / scale / (1 / scale).sum()
    typical = devices / (1 / scale).sum()
    prior = np.concatenate([mean, np.zeros(len(extra_spread))])
    among = np.diag(typical / scale) - np.outer(mean, np.ones(devices))
    extra = len(extra_spread)
    parts = np.zeros((len(spread), devices + 1 + extra))
    parts[:devices, :devices] = among / math.sqrt(devices)
    parts[:devices, devices] = mean * math.sqrt(_SLOPE)
    if extra:
        varies = extra_spread > 1e-9
        size = np.where(varies, typical / np.where(varies, extra_spread, 1.0), 0.0)
        parts[devices:, devices + 1 :] = np.diag(size * math.sqrt(_TEXT / max(int(varies.sum()), 1)))
    return _Basis(centre, prior, parts / max(typical, 1e-9))


def fit_device(
    known: Array, target: Array, extra: Array | None = None, texts: Sequence[Hashable] | None = None
) -> DeviceFit:
    """Fit a device from its measured log10 values ``(n,)`` and the known devices' predictions ``(n, devices)``.

    ``extra (n, columns)`` may describe the texts (operator counts, sizes); its prior weight is 0, and NaN is unknown.
    ``texts`` says which rows share a text; by default no rows do.

    Raises:
        ValueError: fewer than ``MIN_MEASUREMENTS`` rows, no device, or a value of a device that is not finite.
    """
    known, target = np.asarray(known, np.float64), np.asarray(target, np.float64)
    n, devices = known.shape
    if n < MIN_MEASUREMENTS or devices < 1 or len(target) != n:
        raise ValueError(f"{n} rows of {devices} devices and {len(target)} values cannot be fitted")
    if not (np.isfinite(known).all() and np.isfinite(target).all()):
        raise ValueError("log10 values must be finite")
    owners = list(texts) if texts is not None else list(range(n))
    counts = Counter(owners)
    order = sorted(counts, key=lambda text: counts[text] == 1)
    own = np.array([order.index(text) for text in owners], np.int64)
    several = sum(count > 1 for count in counts.values())
    columns = joined(known, extra)
    basis = _basis(columns, devices)
    centred = np.where(np.isfinite(columns), columns - basis.centre, 0.0)
    parts = centred @ basis.parts
    found = posterior(parts @ parts.T, target - centred @ basis.prior, own)

    def mapped(solution: Solution) -> tuple[Array, Array]:
        weights = basis.prior + (solution.duals @ parts) @ basis.parts.T
        intercepts = solution.offsets - weights @ basis.centre
        return np.concatenate([weights, solution.effects[..., :several]], axis=-1), intercepts

    def rest(solution: Solution, width: int) -> Rest:
        weights, intercepts = mapped(solution)
        apart = np.arange(n) if len(weights) == n else own
        shown = np.concatenate([centred + basis.centre, np.eye(len(order))[own, :several]], axis=1)[:, :width]
        predicted = (weights[apart, :width] * shown).sum(1) + intercepts[apart]
        return Rest(weights[:, :width], intercepts, target - predicted)

    weights, intercept = mapped(found.whole)
    return DeviceFit(
        devices,
        basis.centre,
        weights,
        float(intercept),
        own,
        rest(found.without_group, len(basis.centre)),
        rest(found.without_point, len(weights)) if several else None,
    )


def choose(known: Array, count: int, extra: Array | None = None, *, noise: float = 0.1) -> list[int]:
    """Which ``count`` of the texts ``(rows, devices)`` to measure: each next one explains most of what is left open.

    Greedy A-optimal design under the prior of :func:`fit_device` (Krause et al., JMLR 9, 2008, section 3).
    """
    columns = joined(known, extra)
    basis = _basis(columns, np.shape(known)[1])
    centred = np.where(np.isfinite(columns), columns - basis.centre, 0.0)
    parts = centred @ basis.parts
    # (rows, parts) factors instead of the rows x rows covariance: thousands of candidates are fine.
    precision = np.eye(parts.shape[1])
    chosen: list[int] = []
    for _ in range(min(count, len(parts))):
        covariance = np.linalg.inv(precision)
        projected = parts @ covariance
        explained = np.einsum("ip,pq,iq->i", projected, parts.T @ parts, projected)
        gain = explained / (np.einsum("ip,ip->i", projected, parts) + noise)
        gain[chosen] = -1
        chosen.append(int(gain.argmax()))
        precision += np.outer(parts[chosen[-1]], parts[chosen[-1]]) / noise
    return chosen


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
