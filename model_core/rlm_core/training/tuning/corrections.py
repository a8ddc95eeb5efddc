"""Corrections of a task's predictions on a team's code, and how each becomes part of the model.

``NgramCorrection`` and ``TreeCorrection`` fit the residuals of rows that the model has not seen, with any folds of
groups left out; n-gram weights are added to the n-gram ridge, trees to the forest. ``AffineCorrection``, an offset
and a slope, is for tasks with few rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import Ridge

from rlm_core.inference.adaptation.fit import fit_device
from rlm_core.inference.card import TaskCard
from rlm_core.inference.ngram_ridge import METRICS, Bag, NgramRidge, bag, code_weights, part_name, tfidf, words_of
from rlm_core.inference.trees import Forest
from rlm_core.queries.query_vector import Task, task_parts
from rlm_core.training.student.config import TreesConfig
from rlm_core.training.student.forest_fit import fit_forest

from .data import Array, Rows, TuningData
from .student import EditableModel, LoadedStudent

NO_FOLDS: frozenset[int] = frozenset()
# Of the penalties .3, .6, 1.2 and 3, on halves of four packages that the shipped model has not seen: the first is best,
# by a little.
_PENALTY = 0.3
_NODES = ("left", "right", "roots")
_ROLE_SCALE = {"call": (1.0, 0.7, 0.7), "program": (1.0,)}
_TREES = TreesConfig(trees=120, seeds=2, learning_rate=0.05, leaves=8, leaf_rows=8, l2=3.0)


class Correction(Protocol):
    """A correction of the predictions of one task or forest."""

    def without(self, folds: frozenset[int]) -> Array:
        """Corrected log10 predictions of all rows, fitted without the rows of some folds."""
        ...

    def put(self, editable: EditableModel) -> None:
        """Make the correction, fitted to all rows, part of a model."""
        ...


class NgramCorrection:
    """A ridge on the hashed n-grams of a unit and its callees, for a task with an n-gram ridge."""

    def __init__(
        self, student: LoadedStudent, tuning_data: TuningData, number: int, folds: Rows, anchors: TuningData | None
    ) -> None:
        self._number, self._folds = number, folds
        task = task_parts(student.tasks[number])
        self._basis, self._language = task.basis, task.language
        self._name = part_name(task)
        self._part = student.parts[self._name]
        self._metric = METRICS.index(task.metric)
        rows = tuning_data.rows_of(number)
        self._wide = tuning_data.wide[rows]
        self._residual = tuning_data.actual[rows] - self._wide
        self._grams = gram_matrix(tuning_data, rows, self._part, self._basis)
        self._anchors = None
        if anchors is not None and len(kept := anchors.rows_of(number)):
            # Texts whose predictions should not change.
            self._anchors = gram_matrix(anchors, kept, self._part, self._basis)
        self._fits: dict[frozenset[int], Ridge] = {}

    def without(self, folds: frozenset[int]) -> Array:
        """See :class:`Correction`."""
        corrected: Array = self._wide + self._fit(folds).predict(self._grams)
        return corrected

    def put(self, editable: EditableModel) -> None:
        """See :class:`Correction`."""
        model = self._fit(NO_FOLDS)
        part = editable.parts[self._name]
        scales = np.asarray(_ROLE_SCALE[self._basis])
        weights = decoded(part)
        added = model.coef_.reshape(len(scales), -1) * scales[:, None]
        weights[: len(scales), self._metric] += added.astype(np.float32)
        editable.parts[self._name] = code_weights(part.idf, weights)
        entry = editable.tasks[self._number]
        editable.tasks[self._number] = replace(entry, intercept=entry.intercept + float(model.intercept_))

    def _fit(self, folds: frozenset[int]) -> Ridge:
        if folds not in self._fits:
            kept = ~np.isin(self._folds, list(folds))
            grams, residual = self._grams[kept], self._residual[kept]
            if self._anchors is not None:
                grams = sparse.vstack([grams, self._anchors], format="csr")
                residual = np.concatenate([residual, np.zeros(self._anchors.shape[0])])
            self._fits[folds] = Ridge(_PENALTY, solver="sparse_cg", tol=1e-3).fit(grams, residual)
        return self._fits[folds]


class TreeCorrection:
    """Boosted trees on the residuals of a forest, for a task (or setting of networks) with features."""

    def __init__(self, tuning_data: TuningData, number: int, rows: Rows, key: str, folds: Rows) -> None:
        self._key, self._folds = key, folds
        all_rows = tuning_data.rows_of(number)
        self._features = tuning_data.features[number][np.searchsorted(all_rows, rows)]
        self._wide = tuning_data.wide[rows]
        self._residual = tuning_data.actual[rows] - self._wide
        groups = tuning_data.corpus.rows.group[rows]
        _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
        self._weights: Array = 1 / np.sqrt(counts[inverse].astype(np.float64))
        self._fits: dict[frozenset[int], Forest] = {}

    def without(self, folds: frozenset[int]) -> Array:
        """See :class:`Correction`."""
        corrected: Array = self._wide + self._fit(folds).predict(self._features)
        return corrected

    def put(self, editable: EditableModel) -> None:
        """See :class:`Correction`."""
        editable.forests[self._key] = joined(editable.forests[self._key], self._fit(NO_FOLDS))

    def _fit(self, folds: frozenset[int]) -> Forest:
        if folds not in self._fits:
            kept = ~np.isin(self._folds, list(folds))
            basis, language = self._key.split("/")[:2]
            # A residual may fall where a cost grows: no monotonic features, no share for the estimate.
            self._fits[folds] = fit_forest(
                self._features[kept], self._residual[kept], self._weights[kept], f"{basis}/{language}/residual", _TREES
            )
        return self._fits[folds]


def joined(first: Forest, second: Forest) -> Forest:
    """A forest whose prediction is the sum of two; the second has no estimate.

    Where the first's estimate is unknown, the leaves of both are scaled up to the whole.
    """
    at = np.int32(len(first.feature))
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name in ("feature", "threshold", "left", "right", "missing_left", "value", "roots"):
        after = getattr(second, name)
        arrays[name] = np.concatenate([getattr(first, name), after + at if name in _NODES else after])
    offset = first.offset.copy()
    offset[0] += second.offset[0]
    return Forest(**arrays, offset=offset)


def decoded(part: NgramRidge) -> npt.NDArray[np.float32]:
    """The weights of an n-gram ridge, ``(roles, metrics, buckets)``."""
    share = part.codes.astype(np.float32) / np.float32(127)
    return np.asarray(share * np.abs(share) * part.largest[:, :, None], np.float32)


def gram_matrix(tuning_data: TuningData, rows: Rows, part: NgramRidge, basis: str) -> sparse.csr_matrix:
    """The n-grams of rows in each role, ``(rows, roles * buckets)``, with the weights of the n-gram ridge."""
    corpus, scales = tuning_data.corpus, _ROLE_SCALE[basis]
    known: dict[int, Bag] = {}

    def of(text: int) -> Bag:
        if text not in known:
            words = words_of(corpus.texts[text][0])
            known[text] = tfidf(bag(tuning_data.encoded.ids[text], words, part.bits), part.idf)
        return known[text]

    indices, data, ends = [], [], [0]
    for row in rows:
        parts = [(of(int(corpus.rows.text[row])), 0, scales[0])]
        for role in range(1, len(scales)):
            callees = [of(int(text)) for text in corpus.rows.callees[row, role - 1] if text >= 0]
            parts += [(callee, role, scales[role] / np.sqrt(len(callees))) for callee in callees]
        indices.append(np.concatenate([grams.buckets + (role << part.bits) for grams, role, _ in parts]))
        data.append(np.concatenate([grams.weights * scale for grams, _, scale in parts]))
        ends.append(ends[-1] + len(indices[-1]))
    shape = (len(rows), len(scales) << part.bits)
    matrix = sparse.csr_matrix((np.concatenate(data), np.concatenate(indices), ends), shape=shape, dtype=np.float32)
    matrix.sum_duplicates()
    return matrix


_LEAST_SLOPE = 0.1


@dataclass(frozen=True, slots=True)
class AffineCorrection:
    """``log10 y = slope * log10 prediction + offset``, from the model's values to the team's; ``slope`` is above 0.

    It is the fit of ``adaptation`` with the model as the one known device, so few rows move little. Moving the scales
    of the model applies it: every distribution keeps its position on its scale.
    """

    slope: float
    offset: float

    def apply(self, logs: Array) -> Array:
        """The corrected values."""
        return self.slope * logs + self.offset

    def move_task(self, entry: TaskCard) -> TaskCard:
        """A task of the card with its scale and linear terms moved."""
        floor = np.log10(entry.scale.floor) if entry.scale.floor else -np.inf
        edges = np.maximum(self.apply(entry.scale.edges), floor)
        calendar = tuple(self.slope * value for value in entry.calendar)
        return TaskCard(
            entry.name, replace(entry.scale, edges=edges), self.slope * entry.intercept + self.offset, calendar
        )

    def move_ridge(self, part: NgramRidge, task: Task) -> NgramRidge:
        """An n-gram ridge with the weights of one task moved."""
        largest = part.largest.copy()
        largest[:, METRICS.index(task.metric)] *= np.float32(self.slope)
        return replace(part, largest=largest)

    def move_forest(self, forest: Forest) -> Forest:
        """A forest of log10 values, moved."""
        offset = forest.offset.astype(np.float64)
        offset[0] = offset[0] * self.slope + self.offset
        offset[2] *= self.slope
        return replace(forest, value=forest.value * np.float32(self.slope), offset=offset.astype(np.float32))

    def move_spread(self, forest: Forest) -> Forest:
        """A forest of log10 sizes of residuals, moved."""
        offset = forest.offset + np.array([np.log10(self.slope), 0, 0], np.float32)
        return replace(forest, offset=offset.astype(np.float32))


def fit_correction(predicted: Array, actual: Array) -> AffineCorrection:
    """The correction from log10 predictions and values, ``(rows,)`` each, at least ``MIN_MEASUREMENTS`` of them."""
    found = fit_device(predicted[:, None], actual)
    slope = float(found.weights[0])
    if slope < _LEAST_SLOPE:
        return AffineCorrection(1.0, float(np.median(actual - predicted)))
    return AffineCorrection(slope, found.intercept)
