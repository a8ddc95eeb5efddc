"""Predictions as JSON: the fields of one prediction, and one row per unit and query.

``rlm-lsp predict --format json``, the HTTP server, the editor's commands and its own requests share these fields.
Values are in SI units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rlm_core.inference.cost_curve import CostCurve
from rlm_core.inference.cost_origins import curable_places, growth_origins
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.devices import device_table
from rlm_core.types import (
    SI_UNIT,
    CodeText,
    CostOrigin,
    CostRatio,
    GrowthEstimate,
    MeasuredPrediction,
    Metric,
    NetworkParts,
    Prediction,
    SizedPrediction,
    SizeValue,
    SourceLine,
    WorkFacts,
    small_answer,
)

from . import labels
from .abstentions import reason, shown, sizes_origin
from .launch_words import launch_fields
from .size_words import has_bound, measured_curve, stated_bound
from .work_words import parts_of, worst_case_form, worst_cases


def prediction_fields(prediction: Prediction) -> dict[str, Any]:
    """The fields of one prediction, in SI units; None where the model abstains."""
    band, small = prediction.band, small_answer(prediction)
    return {
        "basis": prediction.basis,
        "metric": prediction.metric,
        "unit": SI_UNIT[prediction.metric],
        "median": prediction.median,
        "low": band.low if band else None,
        "high": band.high if band else None,
        "coverage": band.coverage if band else None,
        "calibrated": not prediction.uncalibrated if band else None,
        "device": prediction.device,
        "workload": dict(prediction.workload),
        "model": prediction.model,
        "abstained": reason(prediction.abstained) if prediction.abstained is not None else None,
        "truncated": prediction.truncated,
        "growth": growth_fields(prediction.growth),
        "source": prediction.source,
        "measured": measured_fields(small) if isinstance(small, MeasuredPrediction) else None,
        **size_fields(prediction),
        **({"launch": launch_fields(prediction)} if prediction.basis in ("kernel", "module") else {}),
        **({"network": network_fields(prediction.parts)} if prediction.basis == "network" else {}),
    }


def network_fields(parts: NetworkParts | None) -> dict[str, Any] | None:
    """Return what limits the latency of a network, and its most expensive operators; None where that is not known.

    ``arithmetic`` is the share of the time that grows with multiply-accumulates; ``kernels`` is the number of operators
    that the device runs.
    """
    if parts is None:
        return None
    return {
        "bound": parts.bound,
        "arithmetic": parts.arithmetic,
        "kernels": parts.kernels,
        "operators": [asdict(operator) for operator in parts.operators],
    }


def labelled_fields(prediction: Prediction) -> dict[str, Any]:
    """The fields of one prediction, with the texts that people read and the name of its device."""
    band = prediction.band
    return {
        **prediction_fields(prediction),
        "deviceName": device_name(prediction.device),
        "medianText": stated_bound(prediction) or labels.marked_median(prediction),
        "bandText": labels.band(prediction.metric, band, prediction.floor) if band is not None else "",
    }


def ratio_fields(ratio: CostRatio) -> dict[str, Any]:
    """The ratio of two costs with its 80 % range, and the probability that the second is the larger."""
    band = ratio.bands[0] if ratio.bands else None
    return {
        "metric": ratio.metric,
        "device": ratio.device,
        "ratio": ratio.ratio,
        "low": band.low if band is not None else None,
        "high": _finite(band.high) if band is not None else None,
        "above": ratio.above(1.0) if ratio.quantiles else None,
        "direction": ratio.direction,
        "ratioText": labels.times(ratio.ratio) if ratio.ratio is not None else "",
        "rangeText": labels.ratio_band(band) if band is not None else "",
    }


def device_name(device: str | None) -> str | None:
    """The name of a device for people; of one that the table does not have, the device itself."""
    known = device_table().get(device or "")
    return known.name if known is not None else device


def measured_fields(prediction: MeasuredPrediction) -> dict[str, Any]:
    """Return the sources of a number: the measurement, the predicted ratio since, the prediction of the text alone."""
    cost, ratio, predicted = prediction.cost, prediction.ratio, prediction.predicted
    ratio_band = ratio.bands[0] if ratio is not None and ratio.bands else None
    return {
        "median": cost.median,
        "low": cost.low,
        "high": cost.high,
        "calls": cost.calls,
        "tests": cost.tests,
        "kind": cost.kind,
        "device": cost.device,
        "runtime": cost.runtime,
        "date": cost.date,
        "committed": cost.committed,
        "tool": cost.tool,
        "cpu_ratio": cost.cpu_ratio,
        "marks": [mark.value for mark in cost.marks],
        "ratio": ratio.ratio if ratio is not None else None,
        "ratio_low": ratio_band.low if ratio_band is not None else None,
        "ratio_high": _finite(ratio_band.high) if ratio_band is not None else None,
        "predicted": _interval_fields(predicted),
    }


def size_fields(prediction: Prediction) -> dict[str, Any]:
    """Return the inputs for which the cost of a function holds, and what is known at other sizes.

    ``sizes`` are the given ones, else those at which it was measured. ``small_inputs`` is the cost for inputs like
    those of tests where the number is for given sizes, and ``evidence`` is what supports it there. ``bound`` is the
    least that a call takes at the given sizes, and the calls of unknown cost on top of it.
    """
    small, curve, holds_for = small_answer(prediction), measured_curve(prediction), prediction.holds_for
    at = prediction.at if isinstance(prediction, SizedPrediction) else None
    sizes: dict[str, Any] = {}
    if at is not None:
        sizes = {size.name: size_value_fields(size) for size in at.sizes}
    elif isinstance(small, MeasuredPrediction):
        sizes = {name: {"source": "recorded", **asdict(spread)} for name, spread in small.cost.sizes}
    return {
        "holds_for": holds_for.value if holds_for is not None else None,
        "evidence": at.kind if at is not None else None,
        "sizes": sizes,
        "curve": _curve_fields(curve) if curve is not None else None,
        "beyond_measured": at.beyond if at is not None and at.kind == "curve" else None,
        "bound": {"least": at.least, "calls": {call.name: call.times for call in at.calls}}
        if at is not None and has_bound(at)
        else None,
        "small_inputs": _interval_fields(small) if at is not None and at.kind != "bound" else None,
    }


def size_value_fields(size: SizeValue) -> dict[str, Any]:
    """Return a size and its source; of calls that fix it, how many, of how many, and the range of their values."""
    calls = {"calls": asdict(size.calls)} if size.calls is not None else {}
    return {"value": size.value, "source": size.source, "rule": size.rule, **calls}


def _curve_fields(curve: CostCurve) -> dict[str, Any]:
    return {
        "size": curve.size,
        "exponent": curve.exponent,
        "coefficient": curve.coefficient,
        "from": curve.least,
        "measured_to": curve.measured_to,
        "holds_to": curve.most,
        "points": [asdict(point) for point in curve.points],
    }


def _interval_fields(prediction: Prediction) -> dict[str, Any]:
    band = prediction.band
    return {
        "median": prediction.median,
        "low": band.low if band is not None else None,
        "high": _finite(band.high) if band is not None else None,
    }


def growth_fields(estimate: GrowthEstimate | None) -> dict[str, Any] | None:
    """Return a cost's growth class, its probability and the inputs by name; None if it is not certain enough."""
    if estimate is None or not estimate.is_claim:
        return None
    return {
        "class": estimate.growth_class,
        "probability": estimate.probability,
        "sizes": list(estimate.named_sizes),
        "in_worst_case": estimate.in_worst_case,
    }


def work_fields(
    work: WorkFacts | None, metric: Metric, prediction: Prediction | None, first_line: int
) -> dict[str, Any]:
    """Return the facts of a unit's text about its cost, in SI units; ``first_line`` is added to the lines of the facts.

    Waits and the line of a loop that may not end belong to the unit, causes to the metric; they are parts of the
    prediction where there is one. A regular expression that backtracks for some texts is a cause without an amount but
    with the growth of its worst case. A bound that is not known is None, since JSON has no infinity.
    """
    waits = work.waits if work is not None else ()
    return {
        "waits": [
            {
                "kind": wait.kind.value,
                "line": first_line + wait.line,
                "call": wait.call,
                "seconds": {name: _finite(value) for name, value in asdict(wait.seconds).items()}
                if wait.seconds is not None
                else None,
                "share": wait.share,
                "per": [size for size in wait.per if not size.startswith("?")],
                "on_error": wait.on_error,
                "each": wait.each,
            }
            for wait in waits
        ],
        "loop_waits": [
            {"kind": wait.kind.value, "line": first_line + wait.line, "call": wait.call, "over": wait.over}
            for wait in (work.loop_waits if work is not None else ())
        ],
        "endless": first_line + work.endless if work is not None and work.endless is not None else None,
        "causes": [
            {
                "kind": cause.kind.value,
                "line": first_line + cause.line,
                "name": cause.name,
                "amount": _finite(cause.amount),
                "count": _finite(cause.count),
                "worst_case": None,
            }
            for cause in (parts_of(work, metric, prediction) if work is not None else ())
        ]
        + [
            {
                "kind": cause.kind.value,
                "line": first_line + cause.line,
                "name": cause.name,
                "amount": None,
                "count": None,
                "worst_case": worst_case_form(cause.worst_case),
            }
            for cause in (worst_cases(work) if work is not None and metric == "latency" else ())
            if cause.worst_case is not None
        ],
    }


def unit_row(file: str, analysed: AnalysedUnit, prediction: Prediction, cell: int | None = None) -> dict[str, Any]:
    """One row of ``rlm-lsp predict``: the file, the unit, the prediction, and what the text says.

    Lines are 1-based; those of a notebook are in its ``cell``.
    """
    return shown(analysed, (prediction,), lambda analysed, answers: _unit_row(file, analysed, answers[0], cell))


def _unit_row(file: str, analysed: AnalysedUnit, prediction: Prediction, cell: int | None) -> dict[str, Any]:
    unit, sizes = analysed.unit, analysed.sizes
    return {
        "file": file,
        "cell": cell,
        "line": unit.name.start_line + 1,
        "qualname": unit.qualname,
        **prediction_fields(prediction),
        **({"sizes_from": sizes_origin(sizes, unit.kind).replace("`", "")} if sizes is not None else {}),
        **work_fields(analysed.code.work, prediction.metric, prediction, unit.span.start_line + 1),
        "growth_from": _origin_fields(_grown(analysed.code, prediction), unit.span.start_line + 1),
        "curable": _origin_fields(_cured(analysed.code, prediction), unit.span.start_line + 1),
        "analysis_failed": analysed.failure or None,
    }


def _grown(code: CodeText, prediction: Prediction) -> Sequence[CostOrigin]:
    """The places that make a latency grow as its growth says, the most expensive first."""
    growth = prediction.growth if prediction.metric == "latency" else None
    return growth_origins(code, growth) if growth is not None else ()


def _cured(code: CodeText, prediction: Prediction) -> Sequence[CostOrigin]:
    """The places of a latency that have a cheaper rewrite."""
    return curable_places(code) if prediction.metric == "latency" else ()


def _origin_fields(origins: Sequence[CostOrigin], first_line: int) -> list[dict[str, Any]]:
    return [
        {
            **_line_fields(origin.place, first_line),
            "loops": [_line_fields(loop, first_line) for loop in origin.loops],
            "cure": origin.cure.value if origin.cure is not None else None,
        }
        for origin in origins
    ]


def _line_fields(line: SourceLine, first_line: int) -> dict[str, Any]:
    return {"line": first_line + line.line, "text": line.text}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
