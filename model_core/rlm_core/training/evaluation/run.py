"""``rlm-lsp eval``: a predictor and labelled data sets -> a report.

Rows are sampled, predicted once, scored by task and by device, and compared with plain baselines on the same rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from rlm_core.errors import DataError
from rlm_core.files import atomic_write
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.query_vector import Task
from rlm_core.training.datasets.splits import SPLITS

from .baselines import DESCRIPTIONS, MAIN, fit_baselines
from .metrics import Columns, Figures, band_figures, gain, point_figures
from .pairs import PairReport, predict_ratios, report_pairs
from .report import MODEL, Report, TaskReport, coverage_reports, large_enough, mean_reports
from .rows import TASK, PredictionTable, Row, Selection, predict_table, select

Key = TypeVar("Key", bound=tuple[str, ...])
MOST_ROWS = 8_000
_MOST_TRAINING, _MOST_CALIBRATION = 40_000, 10_000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A report, its rows, their floors, and their predictions by predictor (NaN where there is none)."""

    report: Report
    rows: list[Row]
    floors: npt.NDArray[np.float64]
    tables: Mapping[str, PredictionTable]


def evaluate(
    predictor: Predictor,
    data: Sequence[Path],
    split: str = "test",
    baselines: bool = False,
    predictions: Path | None = None,
    most: int = MOST_ROWS,
) -> Report:
    """Evaluate a predictor on one split (or ``all``) of data sets.

    Args:
        predictor: what to evaluate.
        data: Parquet files of ``rlm-lsp data build``.
        split: ``test``, ``val``, ``cal``, ``train`` or ``all``.
        baselines: also fit and score the plain baselines on the ``train`` and ``cal`` rows of ``data``.
        predictions: where to write a Parquet file of every scored row's prediction.
        most: rows per task and device, 0 for all.

    Raises:
        DataError: unusable data, or no training rows for the baselines.
    """
    found = examine(predictor, data, split, baselines=baselines, most=most)
    if predictions is not None:
        _write_predictions(found, predictions)
    return found.report


def examine(
    predictor: Predictor, data: Sequence[Path], split: str = "test", *, baselines: bool = True, most: int = MOST_ROWS
) -> Evaluation:
    """Evaluate as :func:`evaluate` does, and also return the rows and their predictions.

    Raises:
        DataError: unusable data, or no training rows for the baselines.
    """
    if split not in (*SPLITS, "all"):
        raise DataError(f"split {split!r} is not one of {', '.join(SPLITS)}, all")
    selection = select(data, None if split == "all" else (split,), most)
    rows = selection.rows
    if not rows:
        raise DataError(
            f"{', '.join(map(str, data))}: no rows of split {split!r}; build the data set with --split {split}"
        )
    predicted = predict_table(predictor, [(row.code, row.query) for row in rows])
    tables = {MODEL: predicted.table}
    if baselines:
        tables |= _baselines(data, rows, predicted.floors)
    abstained: dict[str, Counter[str]] = defaultdict(Counter)
    for row, reason in zip(rows, predicted.reasons, strict=True):
        if reason:
            abstained[row.code.basis][reason] += 1
    tasks = _tasks(selection, tables, predicted.floors)
    report = Report(
        predictor.model_id,
        split,
        most,
        tasks,
        mean_reports(rows, tables),
        coverage_reports(rows, tables[MODEL], predicted.floors, tasks),
        _pairs(rows, tables, predictor),
        {basis: dict(reasons.most_common()) for basis, reasons in abstained.items()},
    )
    return Evaluation(report, rows, predicted.floors, tables)


def _baselines(
    data: Sequence[Path], rows: Sequence[Row], floors: npt.NDArray[np.float64]
) -> dict[str, PredictionTable]:
    """Predictions of all baselines for all rows, each task fitted on its own training rows."""
    parts: list[dict[Task, list[Row]]] = []
    for split, most in (("train", _MOST_TRAINING), ("cal", _MOST_CALIBRATION)):
        parts.append(defaultdict(list))
        for row in select(data, (split,), most, by=TASK).rows:
            parts[-1][row.task].append(row)
    train, calibration = parts
    if not train:
        raise DataError(
            f"{', '.join(map(str, data))}: no training rows; baselines need a data set built with --split auto"
        )
    columns: dict[str, npt.NDArray[np.float64]] = {}
    cells = _places(row.task for row in rows)
    for key, indices in tqdm(cells.items(), desc="fitting baselines", unit="task", disable=None):
        if not train.get(key):
            continue
        test = [rows[index] for index in indices]
        floor = float(floors[indices].max())
        for name, found in fit_baselines(train[key], calibration[key], test, floor).items():
            selected = columns.setdefault(name, np.full((5, len(rows)), np.nan))
            selected[:, indices] = [getattr(found, field) for field in PredictionTable.__slots__]
    return {name: PredictionTable(*columns[name]) for name in DESCRIPTIONS if name in columns}


def _places(keys: Iterable[Key]) -> dict[Key, npt.NDArray[np.int64]]:
    """The places of each key, keys in order."""
    found: dict[Key, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        found[key].append(index)
    return {key: np.array(indices) for key, indices in sorted(found.items())}


def _tasks(
    selection: Selection, tables: Mapping[str, PredictionTable], floors: npt.NDArray[np.float64]
) -> list[TaskReport]:
    """Reports of every task, each followed by those of its settings where it has several."""
    rows = selection.rows
    reports = []
    for key, indices in _places((*row.task, row.held_out) for row in rows).items():
        available = sum(count for cell, count in selection.available.items() if cell[:5] == key)
        whole = _task(rows, indices, "", available, tables, floors)
        if whole is None:
            continue
        reports.append(whole)
        settings = _places((rows[index].setting,) for index in indices)
        for (setting,), selected in settings.items() if len(settings) > 1 else ():
            part = _task(rows, indices[selected], setting, len(selected), tables, floors)
            if part is not None and large_enough(part.n, part.groups):
                reports.append(part)
    return reports


def _task(
    rows: Sequence[Row],
    indices: npt.NDArray[np.int64],
    setting: str,
    available: int,
    tables: Mapping[str, PredictionTable],
    floors: npt.NDArray[np.float64],
) -> TaskReport | None:
    """The report of those of some rows that the model predicted; None if it predicted none."""
    kept = indices[np.isfinite(tables[MODEL].median[indices])]
    if not len(kept):
        return None
    selected = [rows[index] for index in kept]
    columns = Columns.of(selected, float(floors[kept].max()))
    main = MAIN[columns.basis]
    figures: dict[str, Figures] = {}
    for name, table in tables.items():
        chosen = table.chosen(kept)
        if np.isnan(chosen.median).any() or (setting and name not in (MODEL, main)):
            continue
        figures[name] = point_figures(chosen.median, columns) | band_figures(chosen, columns)
    if main in figures:
        better = gain(tables[MODEL].median[kept], tables[main].median[kept], columns)
        figures[MODEL] |= {"gain": better} if better is not None else {}
    basis, language, metric, judge = selected[0].task
    return TaskReport(
        basis,
        language,
        metric,
        selected[0].held_out,
        setting,
        len(kept),
        available,
        len(indices) - len(kept),
        len(np.unique(columns.groups)),
        figures,
        judge,
    )


def _pairs(rows: Sequence[Row], tables: Mapping[str, PredictionTable], predictor: Predictor) -> list[PairReport]:
    concerned = np.array([index for index, row in enumerate(rows) if row.code.basis in ("call", "program")], np.int64)
    chosen = [rows[index] for index in concerned]
    names = [name for name in (MODEL, MAIN["call"]) if name in tables]
    medians = {name: tables[name].median[concerned] for name in names}
    if not isinstance(predictor, OnnxPredictor):
        return report_pairs(chosen, medians)
    return report_pairs(chosen, medians, {MODEL: partial(predict_ratios, predictor, chosen)})


def _write_predictions(found: Evaluation, path: Path) -> None:
    """Every scored row with its value and prediction, and the medians of the baselines."""
    rows = found.rows
    columns: dict[str, pa.Array] = {
        "id": pa.array([row.id for row in rows]),
        "basis": pa.array([row.code.basis for row in rows]),
        "language": pa.array([row.code.language for row in rows]),
        "metric": pa.array([row.query.metric for row in rows]),
        "device": pa.array([row.query.device for row in rows], pa.string()),
        "group": pa.array([row.group for row in rows]),
        "family": pa.array([row.project_group for row in rows]),
        **{name: pa.array([getattr(row, name) for row in rows]) for name in ("held_out", "split")},
        "value": pa.array([row.value for row in rows]),
        **{name: pa.array(getattr(found.tables[MODEL], name), from_pandas=True) for name in PredictionTable.__slots__},
        "floor": pa.array(found.floors),
    }
    for name, table in found.tables.items():
        if name != MODEL:
            columns[f"median_{name}"] = pa.array(table.median, from_pandas=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as partial:
        pq.write_table(pa.table(columns), partial, compression="zstd")
