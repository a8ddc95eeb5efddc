"""Texts -> those of a fixed set that are most similar, by the cosine of their n-grams weighted by TF-IDF."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .ngram_ridge import Array, Bag

# In front of all rows, so that sums up to each row's end begin with 0.
_NO_BUCKET, _NO_WEIGHT = np.zeros(1, np.int32), np.zeros(1, np.float32)


class SimilarTexts:
    """A set of texts to compare others with, as the rows of a sparse matrix: their bags have unit length."""

    def __init__(self, bags: Sequence[Bag]) -> None:
        self._columns = np.concatenate([_NO_BUCKET, *(bag.buckets.astype(np.int32) for bag in bags)])
        self._weights = np.concatenate([_NO_WEIGHT, *(bag.weights for bag in bags)])
        self._ends = np.cumsum([len(bag.buckets) for bag in bags], dtype=np.int64)

    def similarities(self, text: Bag) -> Array:
        """The cosines with another text, ``(texts,)``, 0..1."""
        dense = np.zeros(int(max(self._columns.max(), text.buckets.max(initial=0))) + 1, np.float32)
        dense[text.buckets] = text.weights
        sums = np.cumsum(self._weights * dense[self._columns], dtype=np.float64)[[0, *self._ends]]
        return np.clip(np.diff(sums), 0, 1).astype(np.float32)


def most_similar(similarities: Array, count: int) -> npt.NDArray[np.int64]:
    """The places of the ``count`` largest similarities above 0, the largest first; of equal ones the first."""
    order = np.argsort(-similarities, kind="stable")[:count]
    return order[similarities[order] > 0]
