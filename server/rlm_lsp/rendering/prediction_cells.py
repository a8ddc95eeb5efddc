"""The predictions of a unit in words: a table row, which ``rlm-lsp predict`` prints and coding agents read.

Input: a unit and its predictions. Output: one row per device and sizes; rows of JSON are made in :mod:`.json_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.judges import JUDGES
from rlm_core.types import AbstentionCode, MeasuredPrediction, Metric, Prediction, SizedPrediction, small_answer

from . import labels, launch_words
from .abstentions import failed_analysis, other_judge, reason, shown
from .growth_words import curable_lines, growth_note, growth_words
from .hover import measured_note
from .network_words import bound_words, operator_chart
from .size_words import size_notes, stated_bound


@dataclass(frozen=True, slots=True)
class CostRow:
    """The costs of a unit on one device, as text that is not yet escaped.

    ``on`` is the judge or device and the sizes, where a unit may have several. ``costs`` are texts by metric, such as
    ``2.4 µs (0.9–8.4 µs)``, and ``medians`` the same in SI units: infinite for what may not end, NaN for what is not
    predicted. ``chart`` are lines about the most expensive operators of a network.
    """

    where: str
    unit: str
    on: str
    note: str
    costs: Mapping[Metric, str] = field(default_factory=dict)
    medians: Mapping[Metric, float] = field(default_factory=dict)
    chart: tuple[str, ...] = ()


def cost_rows(file: str, analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[CostRow]:
    """The rows of a unit of a file."""
    return shown(analysed, predictions, lambda analysed, answers: list(_rows(file, analysed, answers)))


def median_of(analysed: AnalysedUnit, predictions: Sequence[Prediction], metric: Metric) -> float:
    """The largest median of a metric, in SI units: infinite for what may not end, NaN for what is not predicted."""
    values = [_median(prediction) for prediction in predictions if prediction.metric == metric]
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def _median(prediction: Prediction) -> float:
    if prediction.abstained is not None and prediction.abstained.code is AbstentionCode.MAY_NOT_END:
        return math.inf
    if isinstance(prediction, SizedPrediction) and prediction.at.kind == "bound":
        return max(prediction.median or 0.0, prediction.at.least)
    return prediction.median if prediction.median is not None else math.nan


def _rows(file: str, analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> Iterator[CostRow]:
    groups: dict[str, list[Prediction]] = {}
    for prediction in predictions:
        groups.setdefault(place_text(analysed, prediction), []).append(prediction)
    for on, answers in groups.items():
        yield CostRow(
            f"{file}:{analysed.unit.name.start_line + 1}",
            analysed.unit.qualname,
            on,
            "; ".join(notes(analysed, answers)),
            {answer.metric: _cost(answer) for answer in answers},
            {answer.metric: _median(answer) for answer in answers},
            next(filter(None, map(operator_chart, answers)), ()),
        )


def _cost(prediction: Prediction) -> str:
    """``2.4 µs (0.9–8.4 µs)``: the median and the 80 % band; a bound at given sizes in place of a prediction."""
    if (bound := stated_bound(prediction)) is not None:
        return bound
    band, median = prediction.band, labels.marked_median(prediction)
    if not median or band is None:
        return median or "-"
    return f"{median} ({labels.band(prediction.metric, band, prediction.floor)})"


def place_text(analysed: AnalysedUnit, prediction: Prediction) -> str:
    """The judge or device and the sizes, where a unit may have several."""
    judge = JUDGES.get(prediction.device or "") if prediction.basis == "program" else None
    has_devices = prediction.basis in ("kernel", "module", "network") and prediction.device is not None
    device = judge.title if judge is not None else str(prediction.device) if has_devices else ""
    sizes = list(prediction.workload.items()) if prediction.basis == "kernel" else []
    if prediction.basis == "module" and analysed.sizes is not None:
        named = {name for workload in analysed.sizes.workloads for name in workload}
        sizes = [(name, value) for name, value in prediction.workload.items() if name in named]
    if prediction.basis == "network":
        sizes = [(name, value) for name, value in prediction.workload.items() if _is_shown(name, value)]
    return ", ".join(filter(None, [device, " ".join(f"{name}={value}" for name, value in sizes)]))


def _is_shown(name: str, value: str) -> bool:
    """Return whether a part of a network's workload changes its latency much; the rest is in JSON."""
    usual = {"batch": "1", "mode": "infer"}.get(name)
    return name in ("dtype", "backend") or name.startswith("arg") or (usual is not None and value != usual)


def notes(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[str]:
    """Return notes about measurements, waits, growth, and why a number is missing or less certain."""
    found = [note for prediction in predictions for note in _notes(analysed, prediction)]
    growths = [growth_words(answer.growth) if answer.growth is not None else "" for answer in predictions]
    for place, (prediction, growth) in enumerate(zip(predictions, growths, strict=True)):
        # That memory does not grow is usual, and a second metric that grows as the first says nothing new.
        is_usual = (
            prediction.metric == "memory" and prediction.growth is not None and prediction.growth.growth_class == "1"
        )
        if growth and growth not in growths[:place] and not is_usual:
            subject = "memory " if prediction.metric == "memory" else ""
            found.append(subject + growth_note(analysed, prediction).replace("`", ""))
    found += (line.partition(": ")[0].replace("`", "") for line in curable_lines(analysed, predictions))
    return list(dict.fromkeys(found))


def _notes(analysed: AnalysedUnit, prediction: Prediction) -> Iterator[str]:
    work, band = analysed.code.work, prediction.band
    small = small_answer(prediction)
    if isinstance(small, MeasuredPrediction):
        yield measured_note(small)
    yield from size_notes(prediction)
    waits = labels.wait_text(prediction, work)
    if waits:
        yield waits
    if prediction.abstained is not None and prediction.abstained.code is not AbstentionCode.MAY_NOT_END:
        yield reason(prediction.abstained)
    if analysed.failure and prediction.abstained is None:
        yield failed_analysis(analysed.failure)
    if (other := other_judge(analysed.code, prediction)) is not None:
        yield other
    if (launch := launch_words.note(prediction)) and prediction.median is not None:
        yield launch
    if prediction.launch is not None and prediction.launch.is_program:
        yield launch_words.amounts(prediction.launch)
    if band is not None and band.source.by_data_sheet and prediction.source == "predicted":
        yield "by its data sheet"
    if prediction.parts is not None:
        yield bound_words(prediction.parts)
    if prediction.uncalibrated:
        yield "uncalibrated"
    if prediction.truncated:
        yield "text truncated"
