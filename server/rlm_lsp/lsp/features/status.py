"""``rlm-lsp/status``: what a status bar tells of a document. Nothing is predicted for it; what is known is told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rlm_lsp import __version__
from rlm_lsp.lsp.documents import Analysis, Placed
from rlm_lsp.rendering import values as render
from rlm_lsp.rendering.abstentions import reason

from .fields import fields, optional

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

STATUS = "rlm-lsp/status"


async def status(ls: Server, params: Any) -> dict[str, Any]:
    """The model, and how far a document (``uri``) and the unit around a ``line`` (0-based) have predictions.

    ``model`` is None when there is none. Of the document: ``units``, how many of them are ``answered`` or ``abstained``
    from, and the most frequent ``reason``; of the unit: its ``qualname``, ``label``, ``devices`` and ``reason``.
    """
    named = fields(params)
    uri, line = optional(named, "uri", str), optional(named, "line", int)
    await ls.engine.wait_loaded()
    model = await ls.engine.run(lambda predictor: predictor.model_id)
    told: dict[str, Any] = {"version": __version__, "model": model, "document": None, "unit": None}
    analysis = await ls.analysis(uri) if uri is not None and model is not None else None
    if analysis is not None:
        told["document"] = _document(ls, analysis)
        placed = _around(analysis, line) if line is not None else None
        told["unit"] = _unit(ls, analysis, placed) if placed is not None else None
    return told


def _document(ls: Server, analysis: Analysis) -> dict[str, Any]:
    uri = analysis.document.uri
    found = [ls.cached(uri, placed.analysed.code) for placed in analysis.units]
    known = [predictions for predictions in found if predictions]
    refused = [predictions for predictions in known if all(one.band is None for one in predictions)]
    reasons = Counter(one.abstained for predictions in refused for one in predictions[:1] if one.abstained)
    return {
        "units": len(found),
        "answered": len(known) - len(refused),
        "abstained": len(refused),
        "reason": reason(reasons.most_common(1)[0][0]) if reasons else None,
    }


def _unit(ls: Server, analysis: Analysis, placed: Placed) -> dict[str, Any]:
    predictions = ls.cached(analysis.document.uri, placed.analysed.code) or ()
    answered = [one for one in predictions if one.band is not None]
    return {
        "qualname": placed.analysed.unit.qualname,
        "label": render.label(answered, "band"),
        "devices": list(dict.fromkeys(one.device for one in predictions if one.device is not None)),
        "reason": next((reason(one.abstained) for one in predictions if one.abstained), None) if not answered else None,
    }


def _around(analysis: Analysis, line: int) -> Placed | None:
    """The innermost unit around a line."""
    spans = [(placed.analysed.unit.span, placed) for placed in analysis.units]
    around = [(span, placed) for span, placed in spans if span.start_line <= line <= span.end_line]
    return min(around, key=lambda one: one[0].end_byte - one[0].start_byte)[1] if around else None
