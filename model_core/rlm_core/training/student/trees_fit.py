"""Fitting the boosted trees of all bases but functions, with out-of-fold predictions for the training rows.

The target is log10 of the value. Where a basis has an estimate from first principles among its features, it takes a
share of the prediction: it carries over to sizes that no training row had. The trees of programs read the
n-gram ridge's prediction, out of fold for training rows.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from rlm_core.inference import trees
from rlm_core.inference.features import all_feature_names, describe, feature_names, features, forest_key, has_trees
from rlm_core.inference.residuals import Residuals
from rlm_core.inference.trees import Forest
from rlm_core.training.corpus import Corpus, floor_of

from .config import TreesConfig
from .forest_fit import ForestJob, Matrix, fit_job
from .ngram_ridge_fit import fold_of

_FEWEST_ROWS = 100
# Fewer rows are fitted sooner than a child process imports what it needs to fit them.
_ROWS_FOR_PROCESSES = 2_000
# A canonical text, its language, and of each of its rows the workload, the device and the ridge's prediction.
TextQueries = tuple[str, str, list[tuple[dict[str, str], str | None, float]]]


@dataclass(frozen=True, slots=True)
class TreesFit:
    """Forests by ``forest_key``; ``predictions (rows,)`` in log10 SI units, 0 without a forest.

    Those of training rows are out of fold. ``residuals`` are as in ``Card``; the forests of their
    size are among the forests.
    """

    forests: dict[str, Forest]
    residuals: dict[str, Residuals]
    predictions: npt.NDArray[np.float64]


def save_fit(fit: TreesFit, path: Path, rest: Path) -> None:
    """Write the forests to ``path`` and, last, what else was fitted to ``rest`` (.npz)."""
    trees.save(fit.forests, all_feature_names(), path)
    residuals = msgspec.json.encode(fit.residuals).decode()
    np.savez_compressed(rest, predictions=fit.predictions, residuals=np.array(residuals))


def load_fit(path: Path, rest: Path) -> TreesFit:
    """Read what :func:`save_fit` wrote.

    Raises:
        ModelError: the forests are damaged or were fitted on other features.
    """
    with np.load(rest, allow_pickle=False) as file:
        residuals = msgspec.json.decode(str(file["residuals"]), type=dict[str, Residuals])
        return TreesFit(trees.load(path, all_feature_names()), residuals, file["predictions"])


def fit_trees(
    corpus: Corpus, configs: Mapping[str, TreesConfig], ridge: npt.NDArray[np.float64] | None = None
) -> TreesFit:
    """Fit every task that has trees on the training rows of the corpus, as the config of its basis says.

    The forests are independent: each is fitted with one thread, those of many rows in separate processes.

    Args:
        corpus: texts, queries and rows.
        configs: by basis.
        ridge: the n-gram ridge's predictions, ``(rows,)``, as in ``NgramRidgeFit``; None without programs.
    """
    ridge = np.full(len(corpus.rows), np.nan) if ridge is None else ridge
    forests: dict[str, Forest] = {}
    residuals: dict[str, Residuals] = {}
    predictions = np.zeros(len(corpus.rows))
    planted = np.array([has_trees(name) for name in corpus.tasks])
    # A forked child could wait for a lock that another thread of this process held.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for prefix in corpus.prefixes():
            basis, rows = prefix.split("/")[0], corpus.rows_of(prefix)
            rows = rows[planted[corpus.rows.task[rows]]]
            if not len(rows):
                continue
            features_of = _Features(corpus, rows, basis, ridge[rows])
            keys = _keys(replace(corpus, rows=corpus.rows.chosen(rows)))
            names = np.unique(keys).tolist()
            members = {key: np.flatnonzero(keys == key) for key in names}
            jobs = (
                _job(corpus, rows[members[key]], features_of.of(members[key]), key, configs[basis]) for key in names
            )
            fit_all = pool.map if len(rows) >= _ROWS_FOR_PROCESSES else map
            fitted = tqdm(fit_all(fit_job, jobs), desc=f"trees of {prefix}", total=len(names), disable=None)
            for key, (grown, measured, found) in zip(names, fitted, strict=True):
                forests |= grown
                predictions[rows[members[key]]] = found
                residuals |= measured
    return TreesFit(forests, residuals, predictions)


def _job(corpus: Corpus, rows: npt.NDArray[np.int64], matrix: Matrix, key: str, config: TreesConfig) -> ForestJob:
    folds = np.array([fold_of(family) for family in corpus.rows.family[rows]])
    target = log_values(corpus, rows, corpus.tasks[corpus.rows.task[rows[0]]])
    device = np.array([corpus.queries[query][0] or "" for query in corpus.rows.query[rows]])
    chosen = corpus.rows.chosen(rows)
    return ForestJob(key, config, matrix, target, chosen.group, folds, chosen.split, device, chosen.at_floor)


class _Features:
    """The features of rows; for networks, whose forests have a setting each, those of the text alone."""

    def __init__(self, corpus: Corpus, rows: npt.NDArray[np.int64], basis: str, ridge: npt.NDArray[np.float64]) -> None:
        if basis == "network":
            texts, self._index = np.unique(corpus.rows.text[rows], return_inverse=True)
            self._matrix = _feature_rows(basis, [(*corpus.texts[text], [({}, None, math.nan)]) for text in texts])
        else:
            self._index = np.arange(len(rows))
            self._matrix = feature_matrix(corpus, rows, basis, ridge)

    def of(self, chosen: npt.NDArray[np.int64]) -> Matrix:
        """The features of some of the rows."""
        return self._matrix[self._index[chosen]]


def answerable(corpus: Corpus) -> Corpus:
    """The rows that the n-gram ridge or a forest can learn to answer, and their tasks.

    A setting of networks, and a language of a judge other than LeetCode, needs ``_FEWEST_ROWS`` to train on.
    """
    keys = _keys(corpus)
    names, inverse = np.unique(keys, return_inverse=True)
    counts = np.bincount(inverse, weights=corpus.rows.split == "train")
    enough = (counts >= _FEWEST_ROWS) | np.array(["@" not in name for name in names])
    rows = corpus.rows.chosen(np.flatnonzero(enough[inverse]))
    kept, placed = np.unique(rows.task, return_inverse=True)
    return replace(corpus, rows=replace(rows, task=placed), tasks=[corpus.tasks[number] for number in kept])


def _keys(corpus: Corpus) -> npt.NDArray[np.str_]:
    """The forest key of every row; the task's name where its basis has no trees."""
    found: dict[tuple[int, int], str] = {}
    for entry in zip(corpus.rows.task.tolist(), corpus.rows.query.tolist(), strict=True):
        if entry not in found:
            device, workload = corpus.queries[entry[1]]
            found[entry] = forest_key(corpus.tasks[entry[0]], workload, device)
    places = zip(corpus.rows.task.tolist(), corpus.rows.query.tolist(), strict=True)
    return np.array([found[entry] for entry in places])


def log_values(corpus: Corpus, rows: npt.NDArray[np.int64], name: str) -> npt.NDArray[np.float64]:
    """log10 of the measured values of rows of one task, not below its floor."""
    result: npt.NDArray[np.float64] = np.log10(np.maximum(corpus.rows.value[rows], floor_of(name) or 1e-12))
    return result


def feature_matrix(
    corpus: Corpus, rows: npt.NDArray[np.int64], basis: str, ridge: npt.NDArray[np.float64] | None = None
) -> Matrix:
    """The features of rows, ``(rows, features)``; each text is described once.

    Args:
        corpus: texts, queries and rows.
        rows: of one basis and language.
        basis: of the rows.
        ridge: the n-gram ridge's predictions for them, ``(rows,)``; needed for programs.
    """
    order = np.argsort(corpus.rows.text[rows], kind="stable")
    texts: list[TextQueries] = []
    last = -1
    for place in order:
        row = rows[place]
        device, workload = corpus.queries[corpus.rows.query[row]]
        text = int(corpus.rows.text[row])
        if text != last:
            texts.append((*corpus.texts[text], []))
            last = text
        texts[-1][2].append((workload, device, float(ridge[place]) if ridge is not None else math.nan))
    result = np.empty((len(rows), len(feature_names(basis))), np.float32)
    result[order] = _feature_rows(basis, texts)
    return result


def _feature_rows(basis: str, texts: list[TextQueries]) -> Matrix:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return np.concatenate(list(pool.map(_features, [basis] * len(texts), texts, chunksize=64)))


def _features(basis: str, entry: TextQueries) -> Matrix:
    text, language, queries = entry
    described = describe(text, basis, language)
    return np.stack([features(described, basis, *query) for query in queries])
