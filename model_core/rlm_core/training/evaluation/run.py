"""``rlm-lsp eval``: an exported model against the labels of data sets, through the predictor that ships.

Rows are sampled, answered once, scored by slice and by device, and put beside plain baselines of the same rows.
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
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.loading import load
from rlm_core.training.datasets.schema import SPLITS

from .answers import Answers, ask, ask_changes
from .baselines import DESCRIPTIONS, MAIN, fit_baselines
from .figures import Columns, Figures, band_figures, gain, point_figures
from .pairs import PairReport, report_pairs
from .report import MODEL, Report, SliceReport, large_enough
from .rows import SLICE, Row, Selection, select
from .summaries import coverage_reports, mean_reports

Key = TypeVar("Key", bound=tuple[str, ...])
MOST_ROWS = 8_000
_MOST_TRAINING, _MOST_CALIBRATION = 40_000, 10_000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A report with the rows it rests on: their answers by predictor (NaN where it has none) and their floors."""

    report: Report
    rows: list[Row]
    floors: npt.NDArray[np.float64]
    answers: Mapping[str, Answers]


def evaluate(
    model: str,
    data: Sequence[Path],
    split: str = "test",
    baselines: bool = False,
    predictions: Path | None = None,
    most: int = MOST_ROWS,
) -> Report:
    """Evaluate a model on one split (or ``all``) of data sets.

    Args:
        model: an exported directory or ``builtin``.
        data: Parquet files of ``rlm-lsp data build``.
        split: ``test``, ``val``, ``cal``, ``train`` or ``all``.
        baselines: also fit and score the plain baselines on the ``train`` and ``cal`` rows of ``data``.
        predictions: where to write a Parquet file of every scored row's prediction.
        most: rows a slice and device, 0 for all.

    Raises:
        DataError: unusable data, or no training rows for the baselines.
        ModelError: an unusable model.
    """
    found = examine(load(model), data, split, baselines=baselines, most=most)
    if predictions is not None:
        _write_predictions(found, predictions)
    return found.report


def examine(
    predictor: Predictor, data: Sequence[Path], split: str = "test", *, baselines: bool = True, most: int = MOST_ROWS
) -> Evaluation:
    """What :func:`evaluate` does, with the rows and their answers.

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
    asked = ask(predictor, rows)
    answers = {MODEL: asked.answers}
    if baselines:
        answers |= _baselines(data, rows, asked.floors)
    abstained: dict[str, Counter[str]] = defaultdict(Counter)
    for row, reason in zip(rows, asked.reasons, strict=True):
        if reason:
            abstained[row.code.basis][reason] += 1
    slices = _slices(selection, answers, asked.floors)
    report = Report(
        predictor.model_id,
        split,
        most,
        slices,
        mean_reports(rows, answers),
        coverage_reports(rows, answers[MODEL], asked.floors, slices),
        _pairs(rows, answers, predictor),
        {basis: dict(reasons.most_common()) for basis, reasons in abstained.items()},
    )
    return Evaluation(report, rows, asked.floors, answers)


def _baselines(data: Sequence[Path], rows: Sequence[Row], floors: npt.NDArray[np.float64]) -> dict[str, Answers]:
    """Answers of all baselines to all rows, each slice fitted on its own training rows."""
    parts: list[dict[tuple[str, str, str], list[Row]]] = []
    for split, most in (("train", _MOST_TRAINING), ("cal", _MOST_CALIBRATION)):
        parts.append(defaultdict(list))
        for row in select(data, (split,), most, by=SLICE).rows:
            parts[-1][row.slice].append(row)
    train, calibration = parts
    if not train:
        raise DataError(
            f"{', '.join(map(str, data))}: no training rows; baselines need a data set built with --split auto"
        )
    columns: dict[str, npt.NDArray[np.float64]] = {}
    cells = _places(row.slice for row in rows)
    for key, places in tqdm(cells.items(), desc="fitting baselines", unit="slice", disable=None):
        if not train.get(key):
            continue
        test = [rows[place] for place in places]
        floor = float(floors[places].max())
        for name, found in fit_baselines(train[key], calibration[key], test, floor).items():
            mine = columns.setdefault(name, np.full((5, len(rows)), np.nan))
            mine[:, places] = [getattr(found, field) for field in Answers.__slots__]
    return {name: Answers(*columns[name]) for name in DESCRIPTIONS if name in columns}


def _places(keys: Iterable[Key]) -> dict[Key, npt.NDArray[np.int64]]:
    """The places of each key, keys in order."""
    found: dict[Key, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        found[key].append(place)
    return {key: np.array(places) for key, places in sorted(found.items())}


def _slices(selection: Selection, answers: Mapping[str, Answers], floors: npt.NDArray[np.float64]) -> list[SliceReport]:
    """Reports of every slice, each followed by those of its settings where it has several."""
    rows = selection.rows
    reports = []
    for key, places in _places((*row.slice, row.held_out) for row in rows).items():
        available = sum(count for cell, count in selection.available.items() if cell[:4] == key)
        whole = _slice(rows, places, "", available, answers, floors)
        if whole is None:
            continue
        reports.append(whole)
        settings = _places((rows[place].setting,) for place in places)
        for (setting,), mine in settings.items() if len(settings) > 1 else ():
            part = _slice(rows, places[mine], setting, len(mine), answers, floors)
            if part is not None and large_enough(part.n, part.groups):
                reports.append(part)
    return reports


def _slice(
    rows: Sequence[Row],
    places: npt.NDArray[np.int64],
    setting: str,
    available: int,
    answers: Mapping[str, Answers],
    floors: npt.NDArray[np.float64],
) -> SliceReport | None:
    """The report of the rows at some places that the model answered; None if it answered none."""
    kept = places[np.isfinite(answers[MODEL].median[places])]
    if not len(kept):
        return None
    mine = [rows[place] for place in kept]
    columns = Columns.of(mine, float(floors[kept].max()))
    main = MAIN[columns.basis]
    figures: dict[str, Figures] = {}
    for name, all_answers in answers.items():
        found = all_answers.chosen(kept)
        if np.isnan(found.median).any() or (setting and name not in (MODEL, main)):
            continue
        figures[name] = point_figures(found.median, columns) | band_figures(found, columns)
    if main in figures:
        better = gain(answers[MODEL].median[kept], answers[main].median[kept], columns)
        figures[MODEL] |= {"gain": better} if better is not None else {}
    basis, language, metric = mine[0].slice
    return SliceReport(
        basis,
        language,
        metric,
        mine[0].held_out,
        setting,
        len(kept),
        available,
        len(places) - len(kept),
        len(np.unique(columns.groups)),
        figures,
    )


def _pairs(rows: Sequence[Row], answers: Mapping[str, Answers], predictor: Predictor) -> list[PairReport]:
    concerned = np.array([place for place, row in enumerate(rows) if row.code.basis in ("call", "program")], np.int64)
    chosen = [rows[place] for place in concerned]
    names = [name for name in (MODEL, MAIN["call"]) if name in answers]
    medians = {name: answers[name].median[concerned] for name in names}
    if not isinstance(predictor, OnnxPredictor):
        return report_pairs(chosen, medians)
    return report_pairs(chosen, medians, {MODEL: partial(ask_changes, predictor, chosen)})


def _write_predictions(found: Evaluation, path: Path) -> None:
    """Every scored row with its value and the model's answer, and the medians of the baselines."""
    rows = found.rows
    columns: dict[str, pa.Array] = {
        "id": pa.array([row.id for row in rows]),
        "basis": pa.array([row.code.basis for row in rows]),
        "language": pa.array([row.code.language for row in rows]),
        "metric": pa.array([row.query.metric for row in rows]),
        "device": pa.array([row.query.device for row in rows], pa.string()),
        **{name: pa.array([getattr(row, name) for row in rows]) for name in ("group", "family", "held_out", "split")},
        "value": pa.array([row.value for row in rows]),
        **{name: pa.array(getattr(found.answers[MODEL], name), from_pandas=True) for name in Answers.__slots__},
        "floor": pa.array(found.floors),
    }
    for name, answers in found.answers.items():
        if name != MODEL:
            columns[f"median_{name}"] = pa.array(answers.median, from_pandas=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, compression="zstd")
