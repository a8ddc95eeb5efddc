"""Asking a predictor about analysed units, and predictions -> the rows that the command line prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlm_core.analysis import AnalysedUnit
from rlm_core.predictor import Predictor
from rlm_core.types import SI_UNIT, CodeText, Metric, Prediction, Query


def queries_for(predictor: Predictor, code: CodeText, metrics: Sequence[Metric] | None = None) -> tuple[Query, ...]:
    """The model's default queries about a unit, of the wanted ``metrics`` only (None: all)."""
    queries = predictor.default_queries(code.basis, code.language)
    return tuple(query for query in queries if metrics is None or query.metric in metrics)


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
        "model": prediction.model,
        "abstained": prediction.abstained,
        "truncated": prediction.truncated,
    }


def unit_row(file: str, analysed: AnalysedUnit, prediction: Prediction) -> dict[str, Any]:
    """One row of ``rlm-lsp predict``: where the unit is (1-based line of its name) and the answer to one query."""
    unit = analysed.unit
    return {"file": file, "line": unit.name.start_line + 1, "qualname": unit.qualname, **answer(prediction)}
