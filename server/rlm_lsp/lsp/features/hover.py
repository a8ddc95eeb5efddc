"""Hover on a unit's header: all that the model says about it, and how far that can be trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types
from rlm_core.types import Prediction, Unit

from rlm_lsp.history.measured import Measured, measured_here
from rlm_lsp.lsp.documents import Analysis, Placed
from rlm_lsp.rendering.hover import head_words, hover_text

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server


async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """The hover of the unit whose header is under the cursor; waits for the model where it has not answered yet."""
    uri = params.text_document.uri
    analysis = await ls.analysis(uri)
    placed = unit_at(analysis, params.position.line) if analysis is not None else None
    if analysis is None or placed is None:
        return None
    ls.changes.look(analysis)
    await ls.engine.wait_loaded()
    code = placed.analysed.code
    if ls.cached(uri, code) is None:
        await ls.engine.predict([code])
    predictions = ls.cached(uri, code)
    if not predictions:
        return None
    return types.Hover(await content_of(ls, analysis, placed, predictions))


async def content_of(
    ls: Server, analysis: Analysis, placed: Placed, predictions: Sequence[Prediction]
) -> types.MarkupContent:
    """All that is told about a unit, with what was measured of it."""
    document = analysis.document
    measured = await asyncio.to_thread(measured_here, placed.analysed.unit, document.path)
    return types.MarkupContent(ls.markup, _text_of(ls, document.uri, placed, predictions, measured))


def _text_of(
    ls: Server, uri: str, placed: Placed, predictions: Sequence[Prediction], measured: Sequence[Measured]
) -> str:
    since = ls.changes.of(uri, placed.analysed)
    words = head_words(since.state, since.changes) if since is not None else ""
    markdown = ls.markup == types.MarkupKind.Markdown
    told = ((one, ls.engine.share_below(one, placed.analysed.unit.language)) for one in predictions)
    shares = [(prediction, share) for prediction, share in told if share is not None]
    return hover_text(
        placed.analysed, predictions, markdown=markdown, against_head=words, shares=shares, measured=measured
    )


def unit_at(analysis: Analysis, line: int) -> Placed | None:
    """The innermost unit with ``line`` in its header."""
    candidates = [unit for unit in analysis.units if line in unit.header_lines]
    return min(candidates, key=lambda unit: _length(unit.analysed.unit), default=None)


def _length(unit: Unit) -> int:
    return unit.span.end_byte - unit.span.start_byte
