"""``rlm-lsp/status``: what a status bar shows about a document, from cached predictions only."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import msgspec
from pygls.lsp.server import LanguageServer

from rlm_lsp import __version__
from rlm_lsp.lsp.document import Analysis, LocatedUnit
from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.hint_label import label

from .requests import convert

STATUS = "rlm-lsp/status"


class StatusParams(msgspec.Struct):
    """A document, and a 0-based line of it."""

    uri: str | None = None
    line: int | None = None


def register(server: LanguageServer, session: Session) -> None:
    """Answer ``rlm-lsp/status``."""
    server.feature(STATUS)(partial(status, session))


async def status(session: Session, params: Any) -> dict[str, Any]:
    """The model, and how far a document (``uri``) and the unit around a ``line`` have predictions.

    ``model`` is None when there is none. For the document: ``units``, how many of them are ``answered`` or
    ``abstained``, and the most frequent ``reason``; for the unit: its ``qualname``, ``label``, ``devices`` and
    ``reason``.
    """
    at = convert(params, StatusParams)
    await session.predictions.wait_loaded()
    model = await session.predictions.run(lambda predictor: predictor.model_id)
    answer: dict[str, Any] = {"version": __version__, "model": model, "document": None, "unit": None}
    analysis = await session.analysis(at.uri) if at.uri is not None and model is not None else None
    if analysis is not None:
        answer["document"] = _document(session, analysis)
        unit = analysis.unit_around(at.line) if at.line is not None else None
        answer["unit"] = _unit(session, analysis, unit) if unit is not None else None
    return answer


def _document(session: Session, analysis: Analysis) -> dict[str, Any]:
    uri = analysis.document.uri
    known = [predictions for unit in analysis.units if (predictions := session.known(uri, unit.analysed.code))]
    abstained = [predictions for predictions in known if all(answer.band is None for answer in predictions)]
    reasons = Counter(predictions[0].abstained for predictions in abstained if predictions[0].abstained)
    return {
        "units": len(analysis.units),
        "answered": len(known) - len(abstained),
        "abstained": len(abstained),
        "reason": reason(reasons.most_common(1)[0][0]) if reasons else None,
    }


def _unit(session: Session, analysis: Analysis, unit: LocatedUnit) -> dict[str, Any]:
    predictions = session.known(analysis.document.uri, unit.analysed.code) or ()
    answered = [answer for answer in predictions if answer.band is not None]
    reasons = (reason(answer.abstained) for answer in predictions if answer.abstained)
    return {
        "qualname": unit.analysed.unit.qualname,
        "label": label(predictions, "band", work=unit.analysed.code.work),
        "devices": list(dict.fromkeys(answer.device for answer in predictions if answer.device is not None)),
        "reason": None if answered else next(reasons, None),
    }
