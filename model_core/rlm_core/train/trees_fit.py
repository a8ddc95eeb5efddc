"""Fitting the boosted trees of kernels, modules and networks, with out-of-fold predictions for the training rows.

The target is log10 of the value. Where a basis has an estimate from first principles among its features, it takes a
share of the prediction: it carries over to sizes that no training row had.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from .. import trees
from ..calibration import MIN_GROUPS
from ..features import answers_alone, describe, feature_names, features, forest_key
from ..residuals import Residuals, fit_residuals, from_axis, normal_axis, spread_key, to_axis
from ..trees import Forest, slice_of
from .config import TreesConfig
from .dataset import Corpus, floor_of
from .forest_fit import Matrix, fit_forest
from .wide_fit import FOLDS, fold_of

_FEWEST_ROWS = 100
_SPREAD = TreesConfig(trees=40, seeds=1, learning_rate=0.1, leaves=8, leaf_rows=40, l2=3.0)
_SMALLEST_RESIDUAL = 1e-4  # what lies closer says nothing about how far others will lie
Asked = tuple[str, list[tuple[dict[str, str], str | None]]]  # a text, and the (workload, device) of each of its rows


@dataclass(frozen=True, slots=True)
class TreesFit:
    """Forests by :func:`rlm_core.features.forest_key`; ``predictions (rows,)`` in log10 SI units, 0 without a forest.

    Those of training rows are out of fold. ``residuals`` are those of the forests that answer alone; the forests of
    their size are among the forests.
    """

    forests: dict[str, Forest]
    residuals: dict[str, Residuals]
    predictions: npt.NDArray[np.float64]


def save_fit(fit: TreesFit, path: Path, rest: Path, names: Mapping[str, Sequence[str]]) -> None:
    """Write the forests to ``path`` and, last, what else was fitted to ``rest`` (.npz); ``names`` as for trees.save."""
    trees.save(fit.forests, names, path)
    residuals = json.dumps({key: entry.to_json() for key, entry in fit.residuals.items()})
    np.savez_compressed(rest, predictions=fit.predictions, residuals=np.array(residuals))


def load_fit(path: Path, rest: Path, names: Mapping[str, Sequence[str]]) -> TreesFit:
    """Read what :func:`save_fit` wrote.

    Raises:
        ModelError: the forests are damaged or were fitted on other features.
    """
    with np.load(rest, allow_pickle=False) as file:
        residuals = {key: Residuals.from_json(entry) for key, entry in json.loads(str(file["residuals"])).items()}
        return TreesFit(trees.load(path, names), residuals, file["predictions"])


@dataclass(frozen=True, slots=True)
class _Job:
    """What one forest is fitted to: the rows of its key, each array ``(rows, ...)``; ``told`` are the features."""

    key: str
    config: TreesConfig
    told: Matrix
    target: npt.NDArray[np.float64]
    group: npt.NDArray[np.str_]
    fold: npt.NDArray[np.int64]
    split: npt.NDArray[np.str_]


def fit_trees(corpus: Corpus, configs: Mapping[str, TreesConfig]) -> TreesFit:
    """Fit every slice whose basis has features on the training rows of the corpus, as the basis' config says.

    The forests are independent: each is fitted in a process of its own with one thread.
    """
    forests: dict[str, Forest] = {}
    residuals: dict[str, Residuals] = {}
    predictions = np.zeros(len(corpus.rows))
    # A forked child could wait for a lock that a thread of ours held.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for prefix in corpus.prefixes():
            basis = prefix.split("/")[0]
            if not feature_names(basis):
                continue
            rows = corpus.rows_of(prefix)
            told = _Features(corpus, rows, basis)
            keys = _keys(replace(corpus, rows=corpus.rows.chosen(rows)))
            names = np.unique(keys).tolist()
            members = {key: np.flatnonzero(keys == key) for key in names}
            jobs = (_job(corpus, rows[members[key]], told.of(members[key]), key, configs[basis]) for key in names)
            fitted = tqdm(pool.map(_fit, jobs), desc=f"trees of {prefix}", total=len(names), disable=None)
            for key, (grown, measured, found) in zip(names, fitted, strict=True):
                forests |= grown
                predictions[rows[members[key]]] = found
                if measured is not None:
                    residuals[key] = measured
    return TreesFit(forests, residuals, predictions)


def _job(corpus: Corpus, rows: npt.NDArray[np.int64], told: Matrix, key: str, config: TreesConfig) -> _Job:
    folds = np.array([fold_of(family) for family in corpus.rows.family[rows]])
    target = log_values(corpus, rows, slice_of(key))
    return _Job(key, config, told, target, corpus.rows.group[rows], folds, corpus.rows.split[rows])


def _fit(job: _Job) -> tuple[dict[str, Forest], Residuals | None, npt.NDArray[np.float64]]:
    """The forests of a job, its residuals if they answer alone, and its predictions."""
    with threadpool_limits(1):
        if not answers_alone(job.key.split("/")[0]):
            forest, found = _cross_fit(job, FOLDS)
            return {job.key: forest}, None, found
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
    measured = fit_residuals(scores[held_out], job.group[held_out], axis) if held_out.any() else None
    return forests, measured, from_axis(found, axis)


def _fit_spread(job: _Job, found: npt.NDArray[np.float64]) -> Forest:
    """A forest of the size of the training rows' residuals, which are out of fold."""
    train = job.split == "train"
    sizes = np.log10(np.abs(job.target - found)[train] + _SMALLEST_RESIDUAL)
    basis = job.key.split("/")[0]
    # Nothing says that a residual grows with a cost.
    return fit_forest(job.told[train], sizes, group_weights(job.group[train]), f"{basis}/*/spread", _SPREAD)


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


def _cross_fit(job: _Job, folds: int) -> tuple[Forest, npt.NDArray[np.float64]]:
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


def group_weights(groups: npt.NDArray[np.str_]) -> npt.NDArray[np.float64]:
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
