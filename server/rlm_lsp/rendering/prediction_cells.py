"""One prediction in words: the cells of a table row, which ``rlm-lsp predict`` prints and coding agents read.

Input: a unit and one prediction for it. Output: short texts; rows of JSON are made in :mod:`.json_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.judges import JUDGES
from rlm_core.types import AbstentionCode, MeasuredPrediction, Prediction

from . import labels
from .abstentions import failed_analysis, other_judge, reason
from .failures import shown
from .hover import measured_note
from .work_words import growth_words

HEADER = ("WHERE", "UNIT", "BASIS", "METRIC", "80 % BAND", "MEDIAN", "NOTE")


def cells(file: str, analysed: AnalysedUnit, prediction: Prediction) -> tuple[str, ...]:
    """The texts of one prediction for a unit of a file, in the order of ``HEADER``; they are not yet printable."""
    return shown(analysed, (prediction,), lambda analysed, answers: _cells(file, analysed, answers[0]))


def _cells(file: str, analysed: AnalysedUnit, prediction: Prediction) -> tuple[str, ...]:
    band = prediction.band
    return (
        f"{file}:{analysed.unit.name.start_line + 1}",
        analysed.unit.qualname,
        prediction.basis,
        metric_text(analysed, prediction),
        labels.band(prediction.metric, band, prediction.floor) if band else "-",
        labels.marked_median(prediction) or "-",
        "; ".join(notes(analysed, prediction)),
    )


def metric_text(analysed: AnalysedUnit, prediction: Prediction) -> str:
    """The metric, with the judge or device and the sizes where a unit may have several."""
    judge = JUDGES.get(prediction.device or "") if prediction.basis == "program" else None
    has_devices = prediction.basis in ("kernel", "module", "network") and prediction.device is not None
    device = judge.title if judge is not None else str(prediction.device) if has_devices else ""
    sizes = list(prediction.workload.items()) if prediction.basis == "kernel" else []
    if prediction.basis == "module" and analysed.sizes is not None:
        named = {name for workload in analysed.sizes.workloads for name in workload}
        sizes = [(name, value) for name, value in prediction.workload.items() if name in named]
    parts = [device, " ".join(f"{name}={value}" for name, value in sizes)]
    return ", ".join([prediction.metric, *filter(None, parts)])


def notes(analysed: AnalysedUnit, prediction: Prediction) -> Iterator[str]:
    """What was measured, what the unit waits for, how its cost grows, why the number is missing or less certain."""
    work, band = analysed.code.work, prediction.band
    if isinstance(prediction, MeasuredPrediction):
        yield measured_note(prediction)
    waits = labels.wait_text(prediction, work)
    if waits:
        yield waits
    if prediction.growth is not None and (growth := growth_words(prediction.growth)):
        yield growth.replace("`", "")
    if prediction.abstained is not None and prediction.abstained.code is not AbstentionCode.MAY_NOT_END:
        yield reason(prediction.abstained)
    if analysed.failure and prediction.abstained is None:
        yield failed_analysis(analysed.failure)
    if (other := other_judge(analysed.code, prediction)) is not None:
        yield other
    if band is not None and band.source.by_data_sheet and prediction.source == "predicted":
        yield "by its data sheet"
    if prediction.truncated:
        yield "text truncated"
