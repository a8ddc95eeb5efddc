"""Boosted trees on the features of kernels: 5-fold cross-validation by group on the Triton rows.

    python tests/bench/kernels_cv.py --data triton.parquet

Prints Spearman pooled, between kernels (medians) and within kernels (mean).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.data.schema import read_rows
from rlm_core.features import kernel
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold

Array = npt.NDArray[np.float64]


def main() -> None:
    """Run the cross-validation and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    rows = [row for row in read_rows(arguments.data) if row["basis"] == "kernel"]
    matrix = np.stack([kernel.features(kernel.describe(r["text"]), r["workload"], r["device"]) for r in rows])
    target = np.log10([row["value"] for row in rows])
    names = np.array([kernel_name(row) for row in rows])
    roofline = matrix[:, kernel.NAMES.index("seconds_roofline")].astype(float)
    bench = np.array([name.split("/")[0] for name in names])
    folds = {"group": np.array([row["group"] for row in rows]), "kernel": names}
    predictions = {"roofline, nothing fitted": roofline}
    for title, groups in folds.items():
        predictions[f"all features, by {title}"] = out_of_fold(matrix, target, groups, 1, kernel.NAMES)
        trees = out_of_fold(matrix, target, groups, arguments.seeds)
        predictions[f"selected features, by {title}"] = trees
        predictions[f"mean of that and the roofline, by {title}"] = (trees + roofline) / 2
    for title, groups in folds.items():
        print(f"{title}s: {len(set(groups))}")
    for title, predicted in predictions.items():
        print(f"{title}: {score(predicted, target, names)}")
        for only in sorted(set(bench)):
            mine = bench == only
            print(f"    {only}: {score(predicted[mine], target[mine], names[mine])}")


def kernel_name(row: dict[str, Any]) -> str:
    """The kernel that a row is about: benchmark and kernel, with its provider and mode where it has them."""
    return str(row["id"]).split("/", 1)[1].rsplit("/", 1)[0]


def out_of_fold(
    matrix: npt.NDArray[np.float32],
    target: Array,
    groups: npt.NDArray[Any],
    seeds: int,
    names: Sequence[str] = kernel.SELECTED,
) -> Array:
    """Predictions of trees that have not seen a row's group, averaged over seeds. Shape ``(rows,)``."""
    columns = np.array([kernel.NAMES.index(name) for name in names])
    result = np.zeros(len(target))
    for train, test in GroupKFold(5).split(matrix, groups=groups):
        # The trees refuse a column without any value.
        known = columns[np.isfinite(matrix[train][:, columns]).any(axis=0)]
        for seed in range(seeds):
            model = HistGradientBoostingRegressor(
                max_iter=120,
                learning_rate=0.05,
                max_leaf_nodes=6,
                min_samples_leaf=40,
                l2_regularization=3.0,
                max_features=0.3,
                monotonic_cst=[int(kernel.NAMES[column] in kernel.MONOTONIC) for column in known],
                random_state=seed,
            )
            model.fit(matrix[train][:, known], target[train], sample_weight=weights(groups[train]))
            result[test] += model.predict(matrix[test][:, known]) / seeds
    return result


def weights(groups: npt.NDArray[Any]) -> Array:
    """Weights under which a group counts as the square root of its rows."""
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weight = counts[inverse] ** -0.5
    return np.asarray(weight / weight.mean())


def score(predicted: Array, target: Array, kernels: Sequence[str] | npt.NDArray[Any]) -> str:
    """Spearman pooled, between the medians of kernels, and the mean within kernels of at least five rows."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(kernels):
        places[name].append(place)
    medians = np.array([(np.median(predicted[p]), np.median(target[p])) for p in places.values()])
    within = [
        spearmanr(predicted[p], target[p]).statistic for p in places.values() if len(p) >= 5 and np.ptp(target[p]) > 0
    ]
    within = [0.0 if np.isnan(value) else value for value in within]
    pooled = spearmanr(predicted, target).statistic
    between = spearmanr(medians[:, 0], medians[:, 1]).statistic
    error = np.sqrt(np.mean((predicted - target) ** 2))
    return f"pooled {pooled:.3f} between {between:.3f} ({len(medians)}) within {np.mean(within):.3f} rmse {error:.3f}"


if __name__ == "__main__":
    main()
