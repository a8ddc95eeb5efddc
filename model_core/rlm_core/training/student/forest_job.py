"""The forests of one key: cross-fitted, and calibrated where they answer alone, on groups or devices left out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from rlm_core.inference.calibration import MIN_GROUPS
from rlm_core.inference.calibration_source import sheet_level
from rlm_core.inference.features import answers_alone
from rlm_core.inference.residuals import Residuals, fit_residuals, from_axis, normal_axis, spread_key, to_axis
from rlm_core.inference.trees import Forest, slice_of
from rlm_core.queries.data_sheets import BASES, FEWEST_DEVICES

from .config import TreesConfig
from .forest_fit import Matrix, fit_forest
from .wide_fit import FOLDS

_SPREAD = TreesConfig(trees=40, seeds=1, learning_rate=0.1, leaves=8, leaf_rows=40, l2=3.0)
_SMALLEST_RESIDUAL = 1e-4  # what lies closer says nothing about how far others will lie


@dataclass(frozen=True, slots=True)
class Job:
    """What one forest is fitted to: the rows of its key, each array ``(rows, ...)``; ``told`` are the features."""

    key: str
    config: TreesConfig
    told: Matrix
    target: npt.NDArray[np.float64]
    group: npt.NDArray[np.str_]
    fold: npt.NDArray[np.int64]
    split: npt.NDArray[np.str_]
    device: npt.NDArray[np.str_]


def fit_job(job: Job) -> tuple[dict[str, Forest], dict[str, Residuals], npt.NDArray[np.float64]]:
    """The forests of a job, their residuals if they answer alone, and its predictions."""
    with threadpool_limits(1):
        if not answers_alone(job.key.split("/")[0]):
            forest, found = _cross_fit(job, FOLDS)
            return {job.key: forest}, without_devices(job), found
        axis = normal_axis(job.target[job.split == "train"]) if slice_of(job.key).endswith("/accuracy") else ()
        placed = replace(job, target=to_axis(job.target, axis))
        held_out = job.split == "cal"
        few = len(np.unique(job.group[held_out])) < MIN_GROUPS
        # Where groups abound, all that the folds are for is the sizes of the residuals.
        forest, found = _cross_fit(placed, FOLDS if few else 2)
        forests = {job.key: forest}
        scores = placed.target - found
        if few:
            # No forest has seen the groups of ``val`` either, and training rows are predicted out of fold. So few
            # groups do not tell which residuals are large: on unseen kernels, bands that try are twice as wide.
            held_out = job.split != "test"
        else:
            forests[spread_key(job.key)] = spread = _fit_spread(placed, found)
            scores /= 10 ** spread.predict(job.told)
        residuals = without_devices(job)
    if held_out.any():
        residuals[job.key] = fit_residuals(scores[held_out], job.group[held_out], axis)
    return forests, residuals, from_axis(found, axis)


def without_devices(job: Job) -> dict[str, Residuals]:
    """Residuals of devices left out in turn, for those known by their data sheet; none where such are not answered.

    No forest that predicts a row has seen its device or its group. A device counts by the square root of its rows.
    """
    train, held_out = job.split == "train", job.split != "test"
    if job.key.split("/")[0] not in BASES or len(np.unique(job.device[held_out])) < FEWEST_DEVICES:
        return {}
    weights = group_weights(job.group)
    fold = np.where(train, job.fold % FOLDS, -1)
    found = np.zeros(len(job.target))
    for device, number in sorted(set(zip(job.device[held_out].tolist(), fold[held_out].tolist(), strict=True))):
        held = held_out & (job.device == device) & (fold == number)
        kept = train & (job.device != device) & (fold != number)
        forest = fit_forest(job.told[kept], job.target[kept], weights[kept], slice_of(job.key), job.config)
        found[held] = forest.predict(job.told[held])
    return {sheet_level(job.key): fit_residuals((job.target - found)[held_out], job.device[held_out])}


def _fit_spread(job: Job, found: npt.NDArray[np.float64]) -> Forest:
    """A forest of the size of the training rows' residuals, which are out of fold."""
    train = job.split == "train"
    sizes = np.log10(np.abs(job.target - found)[train] + _SMALLEST_RESIDUAL)
    basis = job.key.split("/")[0]
    # Nothing says that a residual grows with a cost.
    return fit_forest(job.told[train], sizes, group_weights(job.group[train]), f"{basis}/*/spread", _SPREAD)


def _cross_fit(job: Job, folds: int) -> tuple[Forest, npt.NDArray[np.float64]]:
    """A forest on the training rows, and predictions for all rows, out of fold for the training rows."""
    name = slice_of(job.key)
    weights = group_weights(job.group)
    train = job.split == "train"
    forest = fit_forest(job.told[train], job.target[train], weights[train], name, job.config)
    found = forest.predict(job.told)
    for number in range(folds):
        held = train & (job.fold % folds == number)
        kept = train & ~held
        if held.any() and kept.any():
            others = fit_forest(job.told[kept], job.target[kept], weights[kept], name, job.config)
            found[held] = others.predict(job.told[held])
    return forest, found


def group_weights(groups: npt.NDArray[np.str_]) -> npt.NDArray[np.float64]:
    """A group counts as the square root of its rows."""
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weights = counts[inverse] ** -0.5
    return np.asarray(weights / weights.mean())
