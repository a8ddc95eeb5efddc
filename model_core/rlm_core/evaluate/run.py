"""``rlm-lsp eval``: an exported model against the labels of a data set, through the predictor that ships."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from .. import load
from ..data.schema import SPLITS, read_rows
from ..errors import DataError
from ..types import Callee, CodeText, Query
from .baselines import Sample, predict_baselines, quarter_of
from .metrics import Figures, band_figures, point_figures
from .report import Report, SliceReport

_BATCH = 256


@dataclass(frozen=True, slots=True)
class _Answer:
    median: float
    low80: float
    high80: float
    low90: float
    high90: float
    floor: float


def evaluate(
    model: str,
    data: Sequence[Path],
    split: str = "test",
    baselines: bool = False,
    predictions: Path | None = None,
) -> Report:
    """Evaluate a model on one split (or ``all``) of data sets.

    Args:
        model: an exported directory or ``builtin``.
        data: Parquet files of ``rlm-lsp data build``.
        split: ``test``, ``val``, ``cal``, ``train`` or ``all``.
        baselines: also fit and score the plain baselines on the ``train`` rows of ``data``.
        predictions: where to write a Parquet file of every row's prediction.

    Raises:
        DataError: unusable data, or no training rows for the baselines.
        ModelError: an unusable model.
    """
    if split not in (*SPLITS, "all"):
        raise DataError(f"split {split!r} is not one of {', '.join(SPLITS)}, all")
    predictor = load(model)
    rows = list(read_rows(data, None if split == "all" else (split,)))
    if not rows:
        raise DataError(
            f"{', '.join(map(str, data))}: no rows of split {split!r}; build the data set with --split {split}"
        )
    answers: list[_Answer | None] = []
    abstained: dict[str, int] = defaultdict(int)
    starts = range(0, len(rows), _BATCH)
    # `disable=None`: no bar where stderr is no terminal.
    for start in tqdm(starts, desc="predicting", unit="batch", disable=True if len(rows) < 1000 else None):
        batch = rows[start : start + _BATCH]
        queries = [[Query(row["metric"], row["device"], row["workload"])] for row in batch]
        for [prediction] in predictor.predict([_code(row) for row in batch], queries):
            if prediction.median is None:
                abstained[prediction.abstained or ""] += 1
                answers.append(None)
            else:
                b80, b90 = prediction.bands
                answers.append(_Answer(prediction.median, b80.low, b80.high, b90.low, b90.high, prediction.floor))
    kept = [(row, answer) for row, answer in zip(rows, answers, strict=True) if answer is not None]
    if predictions is not None:
        _write_predictions(kept, predictions)
    slices: dict[tuple[str, str, str, str], list[tuple[dict[str, Any], _Answer]]] = defaultdict(list)
    for row, answer in kept:
        slices[row["basis"], row["language"], row["metric"], row["held_out"]].append((row, answer))
    train = _training_rows(data) if baselines else {}
    reports = [_slice(key, slices[key], train.get(key[:3]), baselines) for key in sorted(slices)]
    return Report(predictor.model_id, split, reports, dict(abstained))


def _code(row: dict[str, Any]) -> CodeText:
    callees = tuple(Callee(callee["text"], callee["level"]) for callee in row["callees"])
    return CodeText(row["text"], row["language"], row["basis"], callees)


def _training_rows(data: Sequence[Path]) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    train: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in read_rows(data, ("train",)):
        train[row["basis"], row["language"], row["metric"]].append(row)
    if not train:
        raise DataError(
            f"{', '.join(map(str, data))}: no training rows; baselines need a data set built with --split auto"
        )
    return train


def _slice(
    key: tuple[str, str, str, str],
    kept: list[tuple[dict[str, Any], _Answer]],
    train: list[dict[str, Any]] | None,
    baselines: bool,
) -> SliceReport:
    basis, language, metric, held_out = key
    rows, answers = [row for row, _ in kept], [answer for _, answer in kept]
    actual = np.array([row["value"] for row in rows])
    groups = np.array([row["family" if held_out == "package" else "group"] for row in rows])
    families = np.array([row["family"] for row in rows])
    cells = np.array([quarter_of(row["workload"]) for row in rows]) if basis == "program" else None
    floor = answers[0].floor

    def column(name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([getattr(answer, name) for answer in answers])

    figures: dict[str, Figures] = {
        "model": replace(
            point_figures(column("median"), actual, floor, groups, families, cells),
            band80=band_figures(column("low80"), column("high80"), actual, floor, groups),
            band90=band_figures(column("low90"), column("high90"), actual, floor, groups),
        )
    }
    if baselines and train:
        for name, predicted in predict_baselines(_sample(train), _sample(rows), floor).items():
            figures[name] = point_figures(predicted, actual, floor, groups, families, cells)
    return SliceReport(basis, language, metric, held_out, len(rows), len(np.unique(groups)), figures)


def _sample(rows: list[dict[str, Any]]) -> Sample:
    return Sample(
        [row["text"] for row in rows],
        [[callee["text"] for callee in row["callees"]] for row in rows],
        np.array([quarter_of(row["workload"]) for row in rows]),
        np.array([row["value"] for row in rows]),
    )


def _write_predictions(kept: list[tuple[dict[str, Any], _Answer]], path: Path) -> None:
    names = ("id", "basis", "language", "metric", "group", "family", "held_out", "split", "value")
    columns: dict[str, list[Any]] = {name: [row[name] for row, _ in kept] for name in names}
    for name in _Answer.__slots__:
        columns[name] = [getattr(answer, name) for _, answer in kept]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, compression="zstd")
