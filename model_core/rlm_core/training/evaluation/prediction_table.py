"""A predictor and (text, query) pairs -> predictions, and their medians and bands as columns.

Each text is encoded once for all its queries. This is the one way to ask a predictor about rows: evaluation, the
report and the check after tuning use it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from rlm_core.inference.predictor import Predictor
from rlm_core.types import CodeText, Prediction, Query

Array = npt.NDArray[np.float64]
# Limits of a batch: texts and queries.
_TEXTS, _QUERIES = 256, 2048
_QUIET = 1000  # pairs below which no progress bar is worth its line


@dataclass(frozen=True, slots=True)
class PredictionTable:
    """Medians and band ends in SI units, ``(rows,)`` each; NaN where there is no prediction or no band."""

    median: Array
    low80: Array
    high80: Array
    low90: Array
    high90: Array

    def chosen(self, rows: npt.NDArray[np.int64]) -> PredictionTable:
        """The same for some rows."""
        return PredictionTable(*(getattr(self, name)[rows] for name in PredictionTable.__slots__))


@dataclass(frozen=True, slots=True)
class PredictedRows:
    """The table of all rows, the floor of each, and why the predictor abstained: a code, empty where it did not."""

    table: PredictionTable
    floors: Array
    reasons: list[str]


def predict_table(predictor: Predictor, pairs: Sequence[tuple[CodeText, Query]]) -> PredictedRows:
    """Predictions for all pairs as columns, in the order of the pairs."""
    columns = np.full((5, len(pairs)), np.nan)
    floors, reasons = np.zeros(len(pairs)), [""] * len(pairs)
    for row, prediction in predictions(predictor, pairs):
        if prediction.median is None:
            reasons[row] = str(prediction.abstained)
            continue
        floors[row] = prediction.floor
        ends = [end for band in prediction.bands[:2] for end in (band.low, band.high)]
        columns[: 1 + len(ends), row] = [prediction.median, *ends]
    return PredictedRows(PredictionTable(*columns), floors, reasons)


def predictions(
    predictor: Predictor, pairs: Sequence[tuple[CodeText, Query]], title: str = "predicting"
) -> Iterator[tuple[int, Prediction]]:
    """The prediction for each (text, query) pair with the index of the pair, in batches of texts."""
    # `disable=None`: no bar where stderr is not a terminal.
    hidden = True if len(pairs) < _QUIET else None
    with tqdm(desc=title, total=len(pairs), unit="row", disable=hidden, leave=False) as bar:
        for batch in _batches(pairs):
            codes, queries = [code for code, _ in batch], [[pairs[row][1] for row in rows] for _, rows in batch]
            for (_, rows), answers in zip(batch, predictor.predict(codes, queries), strict=True):
                yield from zip(rows, answers, strict=True)
                bar.update(len(rows))


def _batches(pairs: Sequence[tuple[CodeText, Query]]) -> Iterator[list[tuple[CodeText, list[int]]]]:
    """Texts with the indices of their pairs; a batch is bounded in texts and in queries."""
    rows_of: dict[CodeText, list[int]] = defaultdict(list)
    for row, (code, _) in enumerate(pairs):
        rows_of[code].append(row)
    batch: list[tuple[CodeText, list[int]]] = []
    queries = 0
    for code, rows in rows_of.items():
        for start in range(0, len(rows), _QUERIES):
            batch.append((code, rows[start : start + _QUERIES]))
            queries += len(batch[-1][1])
            if len(batch) == _TEXTS or queries >= _QUERIES:
                yield batch
                batch, queries = [], 0
    if batch:
        yield batch
