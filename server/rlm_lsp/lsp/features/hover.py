"""Hover on a unit's header: all predictions for the unit, how far to trust them, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import Prediction

from rlm_lsp.lsp.documents import Analysis, LocatedUnit
from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering.escaping import markdown, printable
from rlm_lsp.rendering.hover import head_words, hover_text
from rlm_lsp.rendering.work_words import rise_words, wait_changes
from rlm_lsp.settings.model import Settings

from .head_diff import HeadDiff, HeadDiffs, rises


def register(server: LanguageServer, session: Session, head_diffs: HeadDiffs) -> None:
    """Answer requests for hovers."""
    server.feature(types.TEXT_DOCUMENT_HOVER)(partial(hover, session, head_diffs))


async def hover(session: Session, head_diffs: HeadDiffs, params: types.HoverParams) -> types.Hover | None:
    """The hover of the unit whose header is under the cursor; waits for the model if there is no prediction yet."""
    uri = params.text_document.uri
    analysis = await session.analysis(uri)
    unit = analysis.unit_at(params.position.line) if analysis is not None else None
    if analysis is None or unit is None:
        return None
    head_diffs.update(analysis)
    await session.predictions.wait_loaded()
    predictions = await session.predict(uri, unit.analysed.code)
    if not predictions:
        return None
    return types.Hover(await content_of(session, head_diffs, analysis, unit, predictions))


async def content_of(
    session: Session, head_diffs: HeadDiffs, analysis: Analysis, unit: LocatedUnit, predictions: Sequence[Prediction]
) -> types.MarkupContent:
    """The text of a hover, in the first format that the client names."""
    document, analysed = analysis.document, unit.analysed
    settings = session.settings_for(document.uri)
    formats = session.capability("text_document.hover.content_format")
    kind = types.MarkupKind(formats[0]) if formats else types.MarkupKind.PlainText
    diff = head_diffs.of(document.uri, analysed)
    shares = [(answer, session.predictions.share_below(answer, analysed.unit.language)) for answer in predictions]
    as_markdown = kind == types.MarkupKind.Markdown
    quote = markdown if as_markdown else printable
    clauses = _clauses(diff, analysed, settings) if diff else []
    text = hover_text(
        analysed,
        predictions,
        markdown=as_markdown,
        against_head=head_words(diff.state, diff.changes, clauses, quote=quote) if diff else "",
        shares=[(answer, share) for answer, share in shares if share is not None],
    )
    return types.MarkupContent(kind, text)


def _clauses(diff: HeadDiff, analysed: AnalysedUnit, settings: Settings) -> list[str]:
    """How the growth and the waits of a unit have changed since ``HEAD``."""
    clauses = [rise_words(rise) for rise in rises(diff, settings)]
    return clauses + (wait_changes(analysed.unit, diff.work.wait) if diff.work.wait is not None else [])
