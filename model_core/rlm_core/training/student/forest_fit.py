"""One forest: boosted regressions of scikit-learn with different seeds, averaged, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingRegressor

from rlm_core.inference.features import estimate_name, feature_names, learnable_names, monotonic_names
from rlm_core.inference.trees import Forest

from .config import TreesConfig

Matrix = npt.NDArray[np.float32]


def fit_forest(
    told: Matrix,
    target: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    name: str,
    config: TreesConfig,
) -> Forest:
    """One forest: boosted regressions with different seeds, averaged, with a share for the basis' own estimate.

    Args:
        told: features, ``(rows, features)``.
        target: log10 of the values in SI units, ``(rows,)``.
        weights: of the rows, ``(rows,)``.
        name: of the slice.
        config: of the basis.
    """
    basis, _, metric = name.split("/")
    names = feature_names(basis)
    chosen = [names.index(one) for one in learnable_names(basis)]
    # The learner takes no column without a value.
    columns = np.array([column for column in chosen if np.isfinite(told[:, column]).any()])
    growing = monotonic_names(basis) if metric == "latency" else ()
    models = []
    for seed in range(config.seeds):
        model = HistGradientBoostingRegressor(
            max_iter=config.trees,
            learning_rate=config.learning_rate,
            max_leaf_nodes=config.leaves,
            min_samples_leaf=config.leaf_rows,
            l2_regularization=config.l2,
            max_features=config.features_a_split,
            monotonic_cst=[int(names[column] in growing) for column in columns],
            random_state=seed,
        )
        models.append(model.fit(told[:, columns], target, sample_weight=weights))
    estimate = estimate_name(basis) if metric == "latency" and config.estimate_share else None
    column = names.index(estimate) if estimate is not None else -1
    return to_forest(models, columns, column, config.estimate_share if estimate is not None else 0.0)


def to_forest(models: Sequence[Any], columns: npt.NDArray[np.int64], estimate: int = -1, share: float = 0.0) -> Forest:
    """The mean of fitted ``HistGradientBoostingRegressor`` models as arrays.

    Args:
        models: the models.
        columns: the numbers of the features that they were fitted on.
        estimate: the number of a feature that takes a share of the prediction, -1 for none.
        share: that share, 0..1.
    """
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
        ((1 - share) * np.concatenate([n["value"] for n, _ in nodes]) / len(models)).astype(np.float32),
        np.array(roots, np.int32),
        np.array([(1 - share) * constant, estimate, share], np.float32),
    )
