"""Asking a predictor about analysed units, and predictions -> the rows that the command line prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from rlm_core.inference.predictor import Predictor
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.devices import canonical_device
from rlm_core.types import SI_UNIT, CodeText, Metric, Prediction, Query

# What a function or a program costs is told for the machine of its labels; sizes say nothing about it.
_FIXED = frozenset({"call", "program"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about units: metrics (None: all), devices and workload (empty: the model's defaults).

    None among the devices is the model's own default.
    """

    metrics: Sequence[Metric] | None = None
    devices: Sequence[str | None] = ()
    workload: Mapping[str, str] = field(default_factory=dict)


DEFAULTS = Asked()


def queries_for(predictor: Predictor, code: CodeText, asked: Asked = DEFAULTS) -> tuple[Query, ...]:
    """The queries about a unit: the model's defaults for its basis, with what is asked in their place.

    Chosen devices are for kernels, modules and networks; a function keeps the device that its labels were measured on,
    unless the chosen one is known for functions too. A kernel is asked at each of the sizes that its file names; chosen
    sizes take their place.
    """
    found: list[Query] = []
    known = predictor.devices(code.basis)
    own = [
        name
        for name in asked.devices
        if name is None or code.basis not in _FIXED or (canonical_device(name) or name) in known
    ]
    sizes = [dict(workload) for workload in code.workloads if not _sized(asked.workload)] or [{}]
    for query in predictor.default_queries(code.basis, code.language):
        if asked.metrics is not None and query.metric not in asked.metrics:
            continue
        devices: Sequence[str | None] = own if own and query.metric != "accuracy" else [query.device]
        for named, device in product(sizes, devices):
            workload = query.workload if code.basis in _FIXED else {**query.workload, **named, **asked.workload}
            one = Query(query.metric, device or query.device, workload)
            if one not in found:
                found.append(one)
    return tuple(found)


def answer(prediction: Prediction) -> dict[str, Any]:
    """The fields of one prediction, in SI units; None where the model abstains."""
    band = prediction.band
    return {
        "basis": prediction.basis,
        "metric": prediction.metric,
        "unit": SI_UNIT[prediction.metric],
        "median": prediction.median,
        "low": band.low if band else None,
        "high": band.high if band else None,
        "coverage": band.coverage if band else None,
        "device": prediction.device,
        "workload": dict(prediction.workload),
        "model": prediction.model,
        "abstained": prediction.abstained,
        "truncated": prediction.truncated,
    }


def unit_row(file: str, analysed: AnalysedUnit, prediction: Prediction) -> dict[str, Any]:
    """One row of ``rlm-lsp predict``: where the unit is (1-based line of its name) and the answer to one query."""
    unit = analysed.unit
    return {"file": file, "line": unit.name.start_line + 1, "qualname": unit.qualname, **answer(prediction)}


def _sized(workload: Mapping[str, str]) -> bool:
    # Imported when first asked: it takes numpy, which the server's start must not.
    from rlm_core.queries.query_vector import has_sizes

    return has_sizes(workload)
