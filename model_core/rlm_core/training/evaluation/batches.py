"""Predictions for many pairs of text and query, in batches of texts; needs no more than the base install."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tqdm import tqdm

from rlm_core.inference.predictor import Predictor
from rlm_core.types import CodeText, Prediction, Query

_TEXTS, _QUERIES = 256, 2048  # limits of a batch
_QUIET = 1000  # pairs below which no progress bar is worth its line


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
