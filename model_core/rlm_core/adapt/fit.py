"""A new device from a few measurements: the known devices' predictions of a text -> its own value, with a band.

All values are log10 of SI units. The new device is the weighted mean of the known ones plus an offset, plus a ridge
correction whose penalties are averaged by their evidence, so that five points move little and a hundred move much.
Bands are jackknife+ intervals (arXiv 1905.02928), widened by the model's own band below ten points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
MIN_MEASUREMENTS = 5
# Noise to signal of the correction, from "trust every point" to "keep the mean and its offset".
_PENALTIES = np.logspace(-3, 1, 9)
# A change of slope along the mean is likelier than a change among devices: both have this ratio of prior variances.
_SLOPE = 3.0
# What the text adds to the devices is likely small: on NAS-Bench-201 0.1 to 0.5 are equally good, and 1 is worse.
_TEXT = 0.2
# A column that hardly varies over the measured texts must not dominate the mean when columns are scaled alike.
_SMALLEST_SCALE = 0.25
# From this many points on both 80 % and 90 % have an order statistic of their own.
ENOUGH_FOR_BANDS = 10


@dataclass(frozen=True, slots=True)
class DeviceFit:
    """A linear map from columns to the new device's log10 value, and the same map with each point left out.

    ``weights (columns,)`` and ``intercept`` predict; ``loo_weights (n, columns)``, ``loo_intercepts (n,)`` and
    ``residuals (n,)`` (measured minus the prediction without that point) make the bands. The first ``devices`` columns
    are the known devices; more columns describe the text. ``centre`` stands in for an unknown value of a column.
    """

    devices: int
    centre: Array
    weights: Array
    intercept: float
    loo_weights: Array
    loo_intercepts: Array
    residuals: Array

    @property
    def n(self) -> int:
        """How many measurements the fit rests on."""
        return len(self.residuals)

    @property
    def typical_error(self) -> float:
        """The median absolute error of a measurement that was left out, in log10."""
        return float(np.median(np.abs(self.residuals)))

    def predict(self, known: Array, extra: Array | None = None) -> Array:
        """log10 values ``(rows,)`` from the known devices' ``(rows, devices)`` and text columns ``(rows, extra)``."""
        result: Array = self._columns(known, extra) @ self.weights + self.intercept
        return result

    def band(
        self, known: Array, coverage: float, own: Array | float = 0.0, extra: Array | None = None
    ) -> tuple[Array, Array]:
        """Lower and upper ends ``(rows,)`` in log10 that cover a new value with probability ``coverage``.

        ``own`` is half the width of the model's band, in log10. With fewer than ``ENOUGH_FOR_BANDS`` points it counts
        for the missing ones where it is the wider: squared half-widths are averaged as variances are under a
        conjugate prior (Gelman et al., Bayesian Data Analysis, section 2.6).
        """
        columns = self._columns(known, extra)
        middle = columns @ self.weights + self.intercept
        left_out = columns @ self.loo_weights.T + self.loo_intercepts
        errors = np.abs(self.residuals)
        rank, stretch = _rank(self.n, coverage)
        low = middle - np.sort(left_out - errors, axis=1)[:, self.n - rank]
        high = np.sort(left_out + errors, axis=1)[:, rank - 1] - middle
        missing = max(ENOUGH_FOR_BANDS - self.n, 0)

        def blended(half: Array) -> Array:
            half = stretch * np.maximum(half, 0)
            result: Array = np.sqrt((self.n * half**2 + missing * np.maximum(half, own) ** 2) / (self.n + missing))
            return result

        return middle - blended(low), middle + blended(high)

    def _columns(self, known: Array, extra: Array | None) -> Array:
        columns = joined(known, extra)
        return np.where(np.isfinite(columns), columns, self.centre)


def joined(known: Array, extra: Array | None) -> Array:
    """Device columns and text columns side by side, ``(rows, columns)``."""
    parts = [np.asarray(known, np.float64)] + ([] if extra is None else [np.asarray(extra, np.float64)])
    return np.concatenate(parts, axis=1)


def _rank(n: int, coverage: float) -> tuple[int, float]:
    """The order statistic of n leave-one-out errors that covers, and by how much to stretch it.

    Where too few points have one, the largest covers n / (n + 1) and is stretched to ``coverage`` as a normal error.
    """
    wanted = math.ceil(coverage * (n + 1) - 1e-9)
    if wanted <= n:
        return wanted, 1.0
    quantile = NormalDist().inv_cdf
    return n, quantile((1 + coverage) / 2) / quantile((1 + n / (n + 1)) / 2)


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


def fit_device(known: Array, target: Array, extra: Array | None = None) -> DeviceFit:
    """Fit a device from its measured log10 values ``(n,)`` and the known devices' predictions ``(n, devices)``.

    ``extra (n, columns)`` may describe the texts (operator counts, sizes); its prior weight is 0, and NaN is unknown.

    Raises:
        ValueError: fewer than ``MIN_MEASUREMENTS`` rows, no device, or a value of a device that is not finite.
    """
    known, target = np.asarray(known, np.float64), np.asarray(target, np.float64)
    n, devices = known.shape
    if n < MIN_MEASUREMENTS or devices < 1 or len(target) != n:
        raise ValueError(f"{n} rows of {devices} devices and {len(target)} values cannot be fitted")
    if not (np.isfinite(known).all() and np.isfinite(target).all()):
        raise ValueError("log10 values must be finite")
    columns = joined(known, extra)
    basis = _basis(columns, devices)
    centred = np.where(np.isfinite(columns), columns - basis.centre, 0.0)
    parts = centred @ basis.parts
    rest = target - centred @ basis.prior
    dual, left_out = _dual(parts @ parts.T, rest)
    weights = basis.prior + basis.parts @ (parts.T @ dual)
    loo_weights = basis.prior + (left_out @ parts) @ basis.parts.T
    errors = target - centred @ weights
    loo_errors = target[None, :] - loo_weights @ centred.T
    # With a flat prior the offset makes the dual coefficients sum to 0; the residuals then average to the offset.
    offset = float(errors.mean())
    others = ~np.eye(n, dtype=bool)
    loo_offsets = np.array([loo_errors[i, others[i]].mean() for i in range(n)])
    return DeviceFit(
        devices,
        basis.centre,
        weights,
        offset - float(basis.centre @ weights),
        loo_weights,
        loo_offsets - loo_weights @ basis.centre,
        np.diag(loo_errors) - loo_offsets,
    )


def _dual(gram: Array, rest: Array) -> tuple[Array, Array]:
    """Dual coefficients ``(n,)`` and those without each point ``(n, n)``, averaged over penalties by their evidence.

    The evidence is the restricted likelihood of a Gaussian process with a flat offset (Rasmussen and Williams,
    Gaussian Processes for Machine Learning, section 2.7); leaving a point out is closed form (section 5.4.2).
    """
    n = len(rest)
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0)
    evidence, duals, left_outs = [], [], []
    for penalty in _PENALTIES:
        inverse = (vectors / (values + penalty)) @ vectors.T
        rows = inverse.sum(1)
        projected = inverse - np.outer(rows, rows) / rows.sum()
        dual = projected @ rest
        misfit = max(float(rest @ dual), 1e-12)
        evidence.append(-0.5 * (np.log(values + penalty).sum() + math.log(rows.sum()) + (n - 1) * math.log(misfit)))
        duals.append(dual)
        left_outs.append(dual[None, :] - (dual / np.diag(projected))[:, None] * projected)
    share = np.exp(np.array(evidence) - max(evidence))
    share /= share.sum()
    return np.tensordot(share, np.array(duals), 1), np.tensordot(share, np.array(left_outs), 1)


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
