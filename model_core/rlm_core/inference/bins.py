"""Distributions over log-spaced bins: edges from training values, quantiles in SI units.

Outcome 0 is "not above the floor", outcomes 1..K are bins of log10(value). Edges follow the data half way: the
density they equalise is the mean of the observed one and a flat one over the log range, so the bulk (megabytes of a
language's runtime) is resolved finely and the tails stay log-spaced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
BINS = 64


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
