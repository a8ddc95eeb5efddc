"""Fitting the boosted trees of kernels, modules and networks, with out-of-fold predictions for the training rows.

The target is log10 of the value. Where a basis has an estimate from first principles among its features, it takes a
share of the prediction: it carries over to sizes that no training row had.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingRegressor
from tqdm import tqdm

from ..features import (
    describe,
    estimate_name,
    feature_names,
    features,
    forest_key,
    learnable_names,
    monotonic_names,
)
from ..trees import Forest, slice_of
from .config import TreesConfig
from .dataset import Corpus, floor_of
from .wide_fit import FOLDS, fold_of

Matrix = npt.NDArray[np.float32]
_FEWEST_ROWS = 100
Asked = tuple[str, list[tuple[dict[str, str], str | None]]]  # a text, and the (workload, device) of each of its rows


@dataclass(frozen=True, slots=True)
class TreesFit:
    """Forests by :func:`rlm_core.features.forest_key`; ``predictions (rows,)`` in log10 SI units, 0 without a forest.

    Those of training rows are out of fold.
    """

    forests: dict[str, Forest]
    predictions: npt.NDArray[np.float64]


def fit_trees(corpus: Corpus, configs: Mapping[str, TreesConfig]) -> TreesFit:
    """Fit every slice whose basis has features on the training rows of the corpus, as the basis' config says."""
    forests: dict[str, Forest] = {}
    predictions = np.zeros(len(corpus.rows))
    for prefix in corpus.prefixes():
        basis = prefix.split("/")[0]
        if not feature_names(basis):
            continue
        rows = corpus.rows_of(prefix)
        told = _Features(corpus, rows, basis)
        keys = _keys(replace(corpus, rows=corpus.rows.chosen(rows)))
        for key in tqdm(np.unique(keys).tolist(), desc=f"trees of {prefix}", disable=None):
            mine = np.flatnonzero(keys == key)
            forest, found = _cross_fit(corpus, rows[mine], told.of(mine), slice_of(key), configs[basis])
            forests[key], predictions[rows[mine]] = forest, found
    return TreesFit(forests, predictions)


class _Features:
    """The features of rows; for networks, whose forests have a setting each, those of the text alone."""

    def __init__(self, corpus: Corpus, rows: npt.NDArray[np.int64], basis: str) -> None:
        if basis == "network":
            texts, self._place = np.unique(corpus.rows.text[rows], return_inverse=True)
            asked: list[Asked] = [(corpus.texts[text][0], [({}, None)]) for text in texts]
            self._matrix = _told(basis, asked)
        else:
            self._place = np.arange(len(rows))
            self._matrix = feature_matrix(corpus, rows, basis)

    def of(self, chosen: npt.NDArray[np.int64]) -> Matrix:
        """The features of some of the rows."""
        return self._matrix[self._place[chosen]]


def _cross_fit(
    corpus: Corpus, rows: npt.NDArray[np.int64], told: Matrix, name: str, config: TreesConfig
) -> tuple[Forest, npt.NDArray[np.float64]]:
    """A forest on the training rows, and log10 predictions for all rows, out of fold for the training rows."""
    target = log_values(corpus, rows, name)
    weights = _weights(corpus.rows.group[rows])
    train = corpus.rows.split[rows] == "train"
    folds = np.array([fold_of(family) for family in corpus.rows.family[rows]])
    forest = fit_forest(told[train], target[train], weights[train], name, config)
    found = forest.predict(told)
    for fold in range(FOLDS):
        held, kept = train & (folds == fold), train & (folds != fold)
        if held.any() and kept.any():
            others = fit_forest(told[kept], target[kept], weights[kept], name, config)
            found[held] = others.predict(told[held])
    return forest, found


def answerable(corpus: Corpus) -> Corpus:
    """The rows that the wide part or a forest can learn to answer, and their slices.

    A setting of networks needs ``_FEWEST_ROWS`` to train on.
    """
    keys = _keys(corpus)
    names, inverse = np.unique(keys, return_inverse=True)
    counts = np.bincount(inverse, weights=corpus.rows.split == "train")
    enough = (counts >= _FEWEST_ROWS) | np.array(["@" not in name for name in names])
    rows = corpus.rows.chosen(np.flatnonzero(enough[inverse]))
    kept, placed = np.unique(rows.slice, return_inverse=True)
    return replace(corpus, rows=replace(rows, slice=placed), slices=[corpus.slices[number] for number in kept])


def _keys(corpus: Corpus) -> npt.NDArray[np.str_]:
    """The forest key of every row; the slice's name where its basis has no trees."""
    found: dict[tuple[int, int], str] = {}
    for entry in zip(corpus.rows.slice.tolist(), corpus.rows.query.tolist(), strict=True):
        if entry not in found:
            device, workload = corpus.queries[entry[1]]
            found[entry] = forest_key(corpus.slices[entry[0]], workload, device)
    places = zip(corpus.rows.slice.tolist(), corpus.rows.query.tolist(), strict=True)
    return np.array([found[entry] for entry in places])


def _weights(groups: npt.NDArray[np.str_]) -> npt.NDArray[np.float64]:
    """A group counts as the square root of its rows."""
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weights = counts[inverse] ** -0.5
    return np.asarray(weights / weights.mean())


def log_values(corpus: Corpus, rows: npt.NDArray[np.int64], name: str) -> npt.NDArray[np.float64]:
    """log10 of the measured values of rows of one slice, not below its floor."""
    result: npt.NDArray[np.float64] = np.log10(np.maximum(corpus.rows.value[rows], floor_of(name) or 1e-12))
    return result


def feature_matrix(corpus: Corpus, rows: npt.NDArray[np.int64], basis: str) -> Matrix:
    """The features of rows, ``(rows, features)``; each text is described once."""
    order = np.argsort(corpus.rows.text[rows], kind="stable")
    asked: list[Asked] = []
    last = -1
    for row in rows[order]:
        device, workload = corpus.queries[corpus.rows.query[row]]
        text = int(corpus.rows.text[row])
        if text != last:
            asked.append((corpus.texts[text][0], []))
            last = text
        asked[-1][1].append((workload, device))
    result = np.empty((len(rows), len(feature_names(basis))), np.float32)
    result[order] = _told(basis, asked)
    return result


def _told(basis: str, asked: list[Asked]) -> Matrix:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return np.concatenate(list(pool.map(_features, [basis] * len(asked), asked, chunksize=64)))


def _features(basis: str, asked: Asked) -> Matrix:
    text, queries = asked
    described = describe(text, basis)
    return np.stack([features(described, basis, workload, device) for workload, device in queries])


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
