"""Predictions as JSON: the fields of one prediction, and one row per unit and query.

``rlm-lsp predict --format json``, the HTTP server, the editor's commands and its own requests share these fields.
Values are in SI units.
"""

from __future__ import annotations

from typing import Any

from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import SI_UNIT, Prediction

from .abstentions import reason


def prediction_fields(prediction: Prediction) -> dict[str, Any]:
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
        "abstained": reason(prediction.abstained) if prediction.abstained is not None else None,
        "truncated": prediction.truncated,
    }


def unit_row(file: str, analysed: AnalysedUnit, prediction: Prediction) -> dict[str, Any]:
    """One row of ``rlm-lsp predict``: the file, the 1-based line of the unit's name, and the prediction."""
    unit = analysed.unit
    return {"file": file, "line": unit.name.start_line + 1, "qualname": unit.qualname, **prediction_fields(prediction)}
