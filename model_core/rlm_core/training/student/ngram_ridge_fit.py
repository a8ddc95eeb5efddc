"""Fits the n-gram ridge: one ridge regression per task, with out-of-fold predictions for the training rows.

The head is trained on these predictions. For a training row they come from a ridge that saw neither its project group
(package, problem) nor its group, as in use; otherwise the head would trust them too much.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import Ridge

from rlm_core.inference.ngram_ridge import (
    CHANGING,
    METRICS,
    Bag,
    NgramRidge,
    bag,
    calendar,
    code_weights,
    combine,
    part_name,
    tfidf,
    words_of,
)
from rlm_core.inference.tokenizer import Ids
from rlm_core.queries.query_vector import task_parts
from rlm_core.training.corpus import Corpus, floor_of

FOLDS = 5
_ROLE_SCALE = {"call": (1.0, 0.7, 0.7), "program": (1.0,)}
BASES = tuple(_ROLE_SCALE)  # that have a n-gram ridge
_CALENDAR_SCALE = 2.0


@dataclass(frozen=True, slots=True)
class LinearTerms:
    """The linear terms of a task besides the n-grams: an intercept and a weight per calendar node (log10 SI units)."""

    intercept: float
    calendar: list[float]


@dataclass(frozen=True, slots=True)
class NgramRidgeFit:
    """The fitted n-gram ridge. ``predictions (rows,)`` are log10 SI units, out of fold for training rows.

    ``changes (rows,)`` is what the change role says of the rows' texts (log10 units), 0 where a basis has none.
    """

    parts: dict[str, NgramRidge]
    terms: dict[str, LinearTerms]
    predictions: npt.NDArray[np.float64]
    changes: npt.NDArray[np.float64]


def fit_ngram_ridge(corpus: Corpus, ids: list[Ids], *, bits: int = 18, penalty: float = 3.0) -> NgramRidgeFit:
    """Fit every task on the training rows of the corpus."""
    parts: dict[str, NgramRidge] = {}
    terms: dict[str, LinearTerms] = {}
    predictions, changes = np.zeros(len(corpus.rows)), np.zeros(len(corpus.rows))
    members: dict[str, dict[int, int]] = {}  # by part: the number of the task by the place of its metric
    for number, name in enumerate(corpus.tasks):
        task = task_parts(name)
        if task.basis in _ROLE_SCALE:
            members.setdefault(part_name(task), {})[METRICS.index(task.metric)] = number
    for part, numbers in members.items():
        basis = part.split("/")[0]
        scales = _ROLE_SCALE[basis]
        rows = np.flatnonzero(np.isin(corpus.rows.task, list(numbers.values())))
        own = np.unique(corpus.rows.text[rows[corpus.rows.split[rows] == "train"]])
        width = _bits(len(own), bits)
        used = np.unique(np.concatenate([corpus.rows.text[rows], corpus.rows.callees[rows].ravel()]))
        bags = {int(i): bag(ids[i], words_of(corpus.texts[i][0]), width) for i in used if i >= 0}
        idf = idf_of([bags[int(i)] for i in own], width)
        units = {i: tfidf(value, idf) for i, value in bags.items()}
        features = _matrix(corpus, rows, units, scales, width)
        changing = basis in CHANGING
        weights = np.zeros((len(scales) + changing, len(METRICS), 1 << width), np.float32)
        for m, number in numbers.items():
            name = corpus.tasks[number]
            mine = np.flatnonzero(corpus.rows.task[rows] == number)
            model, predicted = _cross_fit(features[mine], corpus, rows[mine], name, penalty)
            predictions[rows[mine]] = predicted
            split = len(scales) << width
            coefficients = model.coef_[:split].reshape(len(scales), -1)
            weights[: len(scales), m] = coefficients * np.asarray(scales)[:, None]
            dates = model.coef_[split:] * _CALENDAR_SCALE
            if changing:
                own = features[mine][:, : 1 << width]
                weights[-1, m] = _within_groups(own, corpus, rows[mine], penalty)
                changes[rows[mine]] = own @ weights[-1, m]
            terms[name] = LinearTerms(float(model.intercept_), [float(value) for value in dates])
        parts[part] = code_weights(idf, weights)
    return NgramRidgeFit(parts, terms, predictions, changes)


def _within_groups(
    features: sparse.csr_matrix, corpus: Corpus, rows: npt.NDArray[np.int64], penalty: float
) -> npt.NDArray[np.float64]:
    """The change role of one task: a ridge on what training rows of a group and half year differ in.

    What the group itself costs (the problem, its inputs) is common to them and so drops out.
    """
    train = np.flatnonzero(corpus.rows.split[rows] == "train")
    target = np.log10(np.maximum(corpus.rows.value[rows[train]], 1e-12))
    half = np.floor(2 * corpus.rows.date[rows[train]]).astype(int)
    cells = np.char.add(corpus.rows.group[rows[train]], np.char.add("@", half.astype(np.str_)))
    _, inverse, counts = np.unique(cells, return_inverse=True, return_counts=True)
    places = np.arange(len(train))
    mean = sparse.csr_matrix((1 / counts[inverse], (inverse, places)))
    kept = np.flatnonzero(counts[inverse] > 1)
    if not len(kept):
        return np.zeros(features.shape[1])
    centred = features[train] - (mean @ features[train])[inverse]
    model = Ridge(penalty, solver="sparse_cg", tol=1e-3, fit_intercept=False)
    found: npt.NDArray[np.float64] = model.fit(centred[kept], (target - (mean @ target)[inverse])[kept]).coef_
    return found


def contributions(
    parts: dict[str, NgramRidge], corpus: Corpus, ids: list[Ids], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The n-gram part of the wide prediction of rows, by the same route as at use. Shape ``(rows,)``, log10 units."""
    result = np.zeros(len(rows))
    cache: dict[tuple[str, int], npt.NDArray[np.float32]] = {}

    def of(part: str, text: int) -> npt.NDArray[np.float32]:
        if (part, text) not in cache:
            cache[part, text] = parts[part].contributions(ids[text], words_of(corpus.texts[text][0]))
        return cache[part, text]

    for i, row in enumerate(rows):
        task = task_parts(corpus.tasks[corpus.rows.task[row]])
        part = part_name(task)
        levels = [[of(part, int(c)) for c in level if c >= 0] for level in corpus.rows.callees[row]]
        result[i] = combine(of(part, int(corpus.rows.text[row])), *levels)[METRICS.index(task.metric)]
    return result


def fold_of(name: str, folds: int = FOLDS) -> int:
    """A stable fold number of a family."""
    return zlib.crc32(name.encode()) % folds


def _bits(texts: int, most: int) -> int:
    """The hash width for a number of texts: some sixteen buckets for each, since most n-grams come once."""
    return int(np.clip(np.ceil(np.log2(16 * max(texts, 1))), 12, most))


def idf_of(bags: list[Bag], bits: int) -> npt.NDArray[np.float32]:
    """Inverse document frequencies of buckets, 0 for those in one bag only."""
    frequency = np.zeros(1 << bits)
    for value in bags:
        frequency[value.buckets] += 1
    idf = np.log(len(bags) / (1 + frequency)) + 1
    # A bucket seen in one text only says nothing about others.
    return np.where(frequency < 2, 0, np.maximum(idf, 0)).astype(np.float32)


def _matrix(
    corpus: Corpus, rows: npt.NDArray[np.int64], units: dict[int, Bag], scales: tuple[float, ...], bits: int
) -> sparse.csr_matrix:
    indices, data, ends = [], [], [0]
    for row in rows:
        parts = [(units[int(corpus.rows.text[row])], 0, scales[0])]
        for role in range(1, len(scales)):
            callees = [units[int(i)] for i in corpus.rows.callees[row, role - 1] if i >= 0]
            parts += [(callee, role, scales[role] / np.sqrt(len(callees))) for callee in callees]
        indices.append(np.concatenate([part.buckets + (role << bits) for part, role, _ in parts]))
        data.append(np.concatenate([part.weights * scale for part, _, scale in parts]))
        ends.append(ends[-1] + len(indices[-1]))
    width = len(scales) << bits
    grams = sparse.csr_matrix((np.concatenate(data), np.concatenate(indices), ends), shape=(len(rows), width))
    grams.sum_duplicates()
    dates = sparse.csr_matrix(calendar(corpus.rows.date[rows]) * _CALENDAR_SCALE)
    return sparse.hstack([grams, dates], format="csr", dtype=np.float32)


def _cross_fit(
    features: sparse.csr_matrix, corpus: Corpus, rows: npt.NDArray[np.int64], name: str, penalty: float
) -> tuple[Ridge, npt.NDArray[np.float64]]:
    floor = floor_of(name)
    target = np.log10(np.maximum(corpus.rows.value[rows], floor if floor else 1e-12))
    train = corpus.rows.split[rows] == "train"
    folds = np.array([fold_of(family) for family in corpus.rows.family[rows]])

    def fit(chosen: npt.NDArray[np.bool_]) -> Ridge:
        return Ridge(penalty, solver="sparse_cg", tol=1e-3).fit(features[chosen], target[chosen])

    model = fit(train)
    predicted = model.predict(features)
    # Calibration rows of a family that was trained on represent users' packages, which never were.
    seen = np.isin(corpus.rows.family[rows], np.unique(corpus.rows.family[rows[train]]))
    calibration = (corpus.rows.split[rows] == "cal") & seen
    for fold in range(FOLDS):
        held = (train | calibration) & (folds == fold)
        if held.any() and (train & ~held).any():
            predicted[held] = fit(train & ~held).predict(features[held])
    return model, predicted
