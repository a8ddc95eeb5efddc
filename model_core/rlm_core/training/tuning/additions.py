"""What the wide part or the trees of a slice miss on a team's code: a correction that is added to their prediction.

Both are fitted to the residuals of rows that the model has not seen, any folds of groups left out, and then become
part of the model itself: weights of n-grams are added to its weights, trees to its trees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import Ridge

from rlm_core.inference.ngram_ridge import METRICS, Bag, NgramRidge, bag, code_weights, tfidf, words_of
from rlm_core.inference.trees import Forest, slice_of
from rlm_core.training.student.config import TreesConfig
from rlm_core.training.student.forest_fit import fit_forest

from .draft import Draft
from .material import Array, Material, Rows
from .student import Opened

NO_FOLDS: frozenset[int] = frozenset()
# Of the penalties .3, .6, 1.2 and 3, on halves of four packages that the shipped model has not seen: the first is best,
# by a little.
_PENALTY = 0.3
_NODES = ("left", "right", "roots")
_ROLE_SCALE = {"call": (1.0, 0.7, 0.7), "program": (1.0,)}
_TREES = TreesConfig(trees=120, seeds=2, learning_rate=0.05, leaves=8, leaf_rows=8, l2=3.0)


class Addition(Protocol):
    """A correction of the predictions of one slice or forest."""

    def without(self, folds: frozenset[int]) -> Array:
        """Corrected log10 predictions of all its rows, fitted without the rows of some folds."""
        ...

    def put(self, draft: Draft) -> None:
        """Make the correction, fitted to all rows, part of a model."""
        ...


class Grams:
    """A ridge on the hashed n-grams of a unit and its callees, for a slice with a wide part."""

    def __init__(self, student: Opened, material: Material, number: int, folds: Rows, still: Material | None) -> None:
        self._number, self._folds = number, folds
        self._basis, self._language, metric = student.slices[number].split("/")
        self._part = student.parts[f"{self._basis}/{self._language}"]
        self._metric = METRICS.index(metric)
        rows = material.rows_of(number)
        self._wide = material.wide[rows]
        self._residual = material.actual[rows] - self._wide
        self._grams = gram_matrix(material, rows, self._part, self._basis)
        self._still = None
        if still is not None and len(kept := still.rows_of(number)):
            # Texts for which the prediction is to stay as it was.
            self._still = gram_matrix(still, kept, self._part, self._basis)
        self._fits: dict[frozenset[int], Ridge] = {}

    def without(self, folds: frozenset[int]) -> Array:
        """See :class:`Addition`."""
        found: Array = self._wide + self._fit(folds).predict(self._grams)
        return found

    def put(self, draft: Draft) -> None:
        """See :class:`Addition`."""
        model = self._fit(NO_FOLDS)
        prefix = f"{self._basis}/{self._language}"
        part = draft.parts[prefix]
        scales = np.asarray(_ROLE_SCALE[self._basis])
        weights = decoded(part)
        added = model.coef_.reshape(len(scales), -1) * scales[:, None]
        weights[: len(scales), self._metric] += added.astype(np.float32)
        draft.parts[prefix] = code_weights(part.idf, weights)
        entry = draft.slices[self._number]
        draft.slices[self._number] = replace(entry, intercept=entry.intercept + float(model.intercept_))

    def _fit(self, folds: frozenset[int]) -> Ridge:
        if folds not in self._fits:
            kept = ~np.isin(self._folds, list(folds))
            grams, residual = self._grams[kept], self._residual[kept]
            if self._still is not None:
                grams = sparse.vstack([grams, self._still], format="csr")
                residual = np.concatenate([residual, np.zeros(self._still.shape[0])])
            self._fits[folds] = Ridge(_PENALTY, solver="sparse_cg", tol=1e-3).fit(grams, residual)
        return self._fits[folds]


class Trees:
    """Boosted trees on the residuals of a forest, for a slice (or setting of networks) with features."""

    def __init__(self, material: Material, number: int, rows: Rows, key: str, folds: Rows) -> None:
        self._key, self._folds = key, folds
        all_rows = material.rows_of(number)
        self._told = material.told[number][np.searchsorted(all_rows, rows)]
        self._wide = material.wide[rows]
        self._residual = material.actual[rows] - self._wide
        groups = material.corpus.rows.group[rows]
        _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
        self._weights: Array = 1 / np.sqrt(counts[inverse].astype(np.float64))
        self._fits: dict[frozenset[int], Forest] = {}

    def without(self, folds: frozenset[int]) -> Array:
        """See :class:`Addition`."""
        found: Array = self._wide + self._fit(folds).predict(self._told)
        return found

    def put(self, draft: Draft) -> None:
        """See :class:`Addition`."""
        draft.forests[self._key] = joined(draft.forests[self._key], self._fit(NO_FOLDS))

    def _fit(self, folds: frozenset[int]) -> Forest:
        if folds not in self._fits:
            kept = ~np.isin(self._folds, list(folds))
            basis, language, _ = slice_of(self._key).split("/")
            # A residual may fall where a cost grows: no monotonic features, no share for an estimate.
            self._fits[folds] = fit_forest(
                self._told[kept], self._residual[kept], self._weights[kept], f"{basis}/{language}/residual", _TREES
            )
        return self._fits[folds]


def joined(first: Forest, second: Forest) -> Forest:
    """A forest whose prediction is the sum of two; the second has no estimate of its own.

    Where the first's estimate is unknown, its leaves are scaled up to the whole, and those of the second with them.
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
    """The weights of a slice, ``(roles, metrics, buckets)``."""
    share = part.codes.astype(np.float32) / np.float32(127)
    return np.asarray(share * np.abs(share) * part.largest[:, :, None], np.float32)


def gram_matrix(material: Material, rows: Rows, part: NgramRidge, basis: str) -> sparse.csr_matrix:
    """The n-grams of rows in each role, ``(rows, roles * buckets)``, as the wide part weighs them."""
    corpus, scales = material.corpus, _ROLE_SCALE[basis]
    known: dict[int, Bag] = {}

    def of(text: int) -> Bag:
        if text not in known:
            words = words_of(corpus.texts[text][0])
            known[text] = tfidf(bag(material.encoded.ids[text], words, part.bits), part.idf)
        return known[text]

    indices, data, ends = [], [], [0]
    for row in rows:
        parts = [(of(int(corpus.rows.text[row])), 0, scales[0])]
        for role in range(1, len(scales)):
            callees = [of(int(text)) for text in corpus.rows.callees[row, role - 1] if text >= 0]
            parts += [(callee, role, scales[role] / np.sqrt(len(callees))) for callee in callees]
        indices.append(np.concatenate([one.buckets + (role << part.bits) for one, role, _ in parts]))
        data.append(np.concatenate([one.weights * scale for one, _, scale in parts]))
        ends.append(ends[-1] + len(indices[-1]))
    shape = (len(rows), len(scales) << part.bits)
    grams = sparse.csr_matrix((np.concatenate(data), np.concatenate(indices), ends), shape=shape, dtype=np.float32)
    grams.sum_duplicates()
    return grams
