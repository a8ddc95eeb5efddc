"""One forest: boosted regressions of scikit-learn with different seeds, averaged, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from rlm_core.inference.calibration import MIN_GROUPS
from rlm_core.inference.features import (
    answers_alone,
    estimate_name,
    feature_names,
    learnable_names,
    monotonic_names,
    work_is_known,
)
from rlm_core.inference.residuals import (
    Residuals,
    data_sheet_key,
    fit_residuals,
    from_axis,
    normal_axis,
    spread_key,
    to_axis,
    work_key,
)
from rlm_core.inference.trees import Forest
from rlm_core.queries.devices import MIN_SHEET_DEVICES, SHEET_BASES

from .config import TreesConfig
from .ngram_ridge_fit import FOLDS

Matrix = npt.NDArray[np.float32]
_MAX_BINS = 255  # of scikit-learn, which reserves one more for missing values


def fit_forest(
    features: Matrix,
    target: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    name: str,
    config: TreesConfig,
    at_floor: npt.NDArray[np.bool_] | None = None,
) -> Forest:
    """One forest: boosted regressions with different seeds, averaged, with a share for the basis' own estimate.

    Args:
        features: features, ``(rows, features)``.
        target: log10 of the values in SI units, ``(rows,)``.
        weights: of the rows, ``(rows,)``.
        name: of the task.
        config: of the basis.
        at_floor: targets that are only known not to be above their value, ``(rows,)``: where a first forest predicts
            less, the second one is fitted to that (Schmee and Hahn 1979).
    """
    if at_floor is not None and at_floor.any():
        first = fit_forest(features, target, weights, name, config)
        target = np.where(at_floor, np.minimum(target, first.predict(features)), target)
    basis, _, metric = name.split("/")
    names = feature_names(basis)
    chosen = [names.index(one) for one in learnable_names(basis)]
    # The learner takes no column without a value.
    columns = np.array([column for column in chosen if np.isfinite(features[:, column]).any()])
    edges = [_bin_edges(features[:, column], weights) for column in columns]
    binned = np.stack([_bin(features[:, column], at) for column, at in zip(columns, edges, strict=True)], axis=1)
    estimate = estimate_name(basis) if metric == "latency" and config.estimate_share else None
    column = names.index(estimate) if estimate is not None else -1
    share = config.estimate_share if estimate is not None else 0.0
    if share == 1:  # trees add what the estimate lacks, which need not grow with anything
        target = target - features[:, column]
    growing = monotonic_names(basis) if metric == "latency" and share < 1 else ()
    models = []
    for seed in range(config.seeds):
        model = HistGradientBoostingRegressor(
            max_iter=config.trees,
            learning_rate=config.learning_rate,
            max_leaf_nodes=config.leaves,
            min_samples_leaf=config.leaf_rows,
            l2_regularization=config.l2,
            max_features=config.features_per_split,
            monotonic_cst=[int(names[column] in growing) for column in columns],
            random_state=seed,
        )
        models.append(_with_edges(model.fit(binned, target, sample_weight=weights), edges))
    return to_forest(models, columns, column, share)


def _bin_edges(column: Matrix, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Upper bounds of the bins of a column, excluding the last bin, as scikit-learn sets them.

    scikit-learn computes each weighted quantile separately, which takes 0.15 s per column.
    """
    known = ~np.isnan(column)
    values, weights = column[known].astype(np.float64), weights[known]
    distinct = np.unique(values)
    if len(distinct) <= _MAX_BINS:
        return np.asarray((distinct[:-1] + distinct[1:]) / 2)
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    quantiles = np.arange(1, _MAX_BINS) / _MAX_BINS
    return np.unique(values[order[np.searchsorted(cumulative, quantiles * cumulative[-1])]])


def _bin(column: Matrix, edges: npt.NDArray[np.float64]) -> Matrix:
    """The number of each value's bin, 0 to 254; NaN stays NaN."""
    return np.where(np.isnan(column), np.nan, np.searchsorted(edges, column)).astype(np.float32)


def _with_edges(
    model: HistGradientBoostingRegressor, edges: Sequence[npt.NDArray[np.float64]]
) -> HistGradientBoostingRegressor:
    """A model fitted on bin numbers, with thresholds on the values that the bins were made of."""
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        # An infinite threshold separates missing values from all others.
        for node in np.flatnonzero((nodes["is_leaf"] == 0) & np.isfinite(nodes["num_threshold"])):
            nodes["num_threshold"][node] = edges[nodes["feature_idx"][node]][int(nodes["num_threshold"][node])]
    return model


def to_forest(models: Sequence[Any], columns: npt.NDArray[np.int64], estimate: int = -1, share: float = 0.0) -> Forest:
    """The mean of fitted ``HistGradientBoostingRegressor`` models as arrays.

    Args:
        models: the models.
        columns: the numbers of the features that they were fitted on.
        estimate: the number of a feature that takes a share of the prediction, -1 for none.
        share: that share, 0..1; of a share of 1 the models predict what is to be added to it.
    """
    scale = 1 - share if share < 1 else 1.0
    nodes, roots, constant = [], [], 0.0
    size = 0
    for model in models:
        constant += float(np.ravel(model._baseline_prediction)[0]) / len(models)
        for (predictor,) in model._predictors:
            nodes.append((predictor.nodes, size))
            roots.append(size)
            size += len(predictor.nodes)
    exact = np.concatenate([n["num_threshold"] for n, _ in nodes])
    threshold = exact.astype(np.float32)
    # Rounded down, so that a feature in single precision goes the way that it went in training.
    threshold = np.where(threshold > exact, np.nextafter(threshold, np.float32(-np.inf)), threshold)
    leaf = np.concatenate([n["is_leaf"].astype(bool) for n, _ in nodes])
    feature = columns[np.concatenate([n["feature_idx"] for n, _ in nodes]).astype(np.int64)].astype(np.int16)
    feature[leaf] = -1
    return Forest(
        feature,
        threshold.astype(np.float32),
        np.concatenate([n["left"].astype(np.int64) + at for n, at in nodes]).astype(np.int32),
        np.concatenate([n["right"].astype(np.int64) + at for n, at in nodes]).astype(np.int32),
        np.concatenate([n["missing_go_to_left"].astype(bool) for n, _ in nodes]),
        (scale * np.concatenate([n["value"] for n, _ in nodes]) / len(models)).astype(np.float32),
        np.array(roots, np.int32),
        np.array([scale * constant, estimate, share], np.float32),
    )


_SPREAD = TreesConfig(trees=40, seeds=1, learning_rate=0.1, leaves=8, leaf_rows=40, l2=3.0)
_DEVICE_PARTS = 4
_SMALLEST_RESIDUAL = 1e-4  # what lies closer says nothing about how far others will lie


@dataclass(frozen=True, slots=True)
class ForestJob:
    """The training data of one forest: the rows of its key, each array ``(rows, ...)``."""

    key: str
    config: TreesConfig
    features: Matrix
    target: npt.NDArray[np.float64]
    group: npt.NDArray[np.str_]
    fold: npt.NDArray[np.int64]
    split: npt.NDArray[np.str_]
    device: npt.NDArray[np.str_]
    at_floor: npt.NDArray[np.bool_]

    def fit(self, chosen: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64]) -> Forest:
        """A forest on some of the rows; ``weights`` are those of all."""
        rows = (self.features[chosen], self.target[chosen], weights[chosen])
        return fit_forest(*rows, self.key.partition("@")[0], self.config, self.at_floor[chosen])


def fit_job(job: ForestJob) -> tuple[dict[str, Forest], dict[str, Residuals], npt.NDArray[np.float64]]:
    """The forests of a job, their residuals if they answer alone, and its predictions."""
    with threadpool_limits(1):
        if not answers_alone(job.key):
            forest, found = cross_fit(job, FOLDS)
            return {job.key: forest}, without_devices(job), found
        axis = normal_axis(job.target[job.split == "train"]) if job.key.partition("@")[0].endswith("/accuracy") else ()
        placed = replace(job, target=to_axis(job.target, axis))
        held_out = job.split == "cal"
        few = len(np.unique(job.group[held_out])) < MIN_GROUPS
        # Where groups abound, all that the folds are for is the sizes of the residuals.
        forest, found = cross_fit(placed, FOLDS if few else 2)
        forests = {job.key: forest}
        scores = placed.target - found
        if few:
            # No forest has seen the groups of ``val`` either, and training rows are predicted out of fold. So few
            # groups do not show which residuals are large: on unseen kernels, bands that adapt are twice as wide.
            held_out = job.split != "test"
        else:
            forests[spread_key(job.key)] = spread = _fit_spread(placed, found)
            scores /= 10 ** spread.predict(job.features)
        residuals = without_devices(job)
    held_out &= ~job.at_floor
    if held_out.any():
        residuals |= by_work(job.key, job.features[held_out], scores[held_out], job.group[held_out], axis)
    return forests, residuals, from_axis(found, axis)


def without_devices(job: ForestJob) -> dict[str, Residuals]:
    """Residuals of devices left out of training, for those known by their data sheet; none where such are not answered.

    No forest that predicts a row has seen its device or its group: a quarter of the devices is left out at a time. A
    device counts by the square root of its rows.
    """
    train, held_out = job.split == "train", (job.split != "test") & ~job.at_floor
    devices = np.unique(job.device[held_out])
    if job.key.split("/")[0] not in SHEET_BASES or len(devices) < MIN_SHEET_DEVICES:
        return {}
    weights = group_weights(job.group)
    fold = np.where(train, job.fold % FOLDS, -1)
    part = np.searchsorted(devices, job.device) % _DEVICE_PARTS
    found = np.zeros(len(job.target))
    for left_out, number in sorted(set(zip(part[held_out].tolist(), fold[held_out].tolist(), strict=True))):
        held = held_out & (part == left_out) & (fold == number)
        kept = train & ~job.at_floor & (part != left_out) & (fold != number)
        found[held] = job.fit(kept, weights).predict(job.features[held])
    scores = (job.target - found)[held_out]
    return by_work(data_sheet_key(job.key), job.features[held_out], scores, job.device[held_out])


def by_work(
    key: str,
    features: Matrix,
    scores: npt.NDArray[np.float64],
    groups: npt.NDArray[np.str_],
    axis: tuple[float, ...] = (),
) -> dict[str, Residuals]:
    """Residuals of all rows, and of those whose texts fix what is done and of the others, by their keys.

    Args:
        key: of all rows.
        features: ``(rows, features)``.
        scores: ``(rows,)``.
        groups: ``(rows,)``.
        axis: as of :class:`Residuals`.
    """
    found = {key: fit_residuals(scores, groups, axis)}
    known = work_is_known(key.partition("/")[0], features)
    for is_known in (True, False) if known is not None else ():
        own = known == is_known
        if len(np.unique(groups[own])) >= (MIN_SHEET_DEVICES if data_sheet_key("") in key else MIN_GROUPS):
            found[work_key(key, is_known)] = fit_residuals(scores[own], groups[own], axis)
    return found


def _fit_spread(job: ForestJob, found: npt.NDArray[np.float64]) -> Forest:
    """A forest of the size of the training rows' residuals, which are out of fold."""
    train = job.split == "train"
    sizes = np.log10(np.abs(job.target - found)[train] + _SMALLEST_RESIDUAL)
    basis = job.key.split("/")[0]
    # Nothing says that a residual grows with a cost.
    return fit_forest(job.features[train], sizes, group_weights(job.group[train]), f"{basis}/*/spread", _SPREAD)


def cross_fit(job: ForestJob, folds: int) -> tuple[Forest, npt.NDArray[np.float64]]:
    """A forest on the training rows, and predictions for all rows, out of fold for the training rows."""
    weights = group_weights(job.group)
    train = job.split == "train"
    forest = job.fit(train, weights)
    found = forest.predict(job.features)
    for number in range(folds):
        held = train & (job.fold % folds == number)
        kept = train & ~held
        if held.any() and kept.any():
            found[held] = job.fit(kept, weights).predict(job.features[held])
    return forest, found


def group_weights(groups: npt.NDArray[np.str_]) -> npt.NDArray[np.float64]:
    """A group counts as the square root of its rows."""
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weights = counts[inverse] ** -0.5
    return np.asarray(weights / weights.mean())
