"""Code lenses above programs, PyTorch modules and networks: all metrics, with room for their names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from rlm_core.types import Prediction

from rlm_lsp.lsp.documents import LocatedUnit
from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering import labels as render
from rlm_lsp.settings.model import Settings

from .head_diff import HeadDiffs, marks
from .inlay_hints import is_hidden

KINDS = frozenset({"program", "module", "network"})
WIDTH = 100
EXPLAIN = "rlm-lsp.explain"
_REFRESH = "workspace.code_lens.refresh_support"


def register(server: LanguageServer, session: Session, head_diffs: HeadDiffs) -> None:
    """Answer requests for lenses, and have the client repeat them when there are new results."""
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(partial(code_lenses, session, head_diffs))

    def refresh() -> None:
        if session.capability(_REFRESH):
            session.client.workspace_code_lens_refresh(None)

    session.on_results(refresh)


async def code_lenses(session: Session, head_diffs: HeadDiffs, params: types.CodeLensParams) -> list[types.CodeLens]:
    """The lenses of a document, as far as its predictions are known."""
    uri = params.text_document.uri
    analysis = await session.analysis(uri)
    settings = session.settings_for(uri)
    if analysis is None or not settings.code_lens:
        return []
    units = [unit for unit in analysis.units if unit.analysed.unit.kind in KINDS]
    if not units:
        return []
    available = await session.available(analysis, units, refreshes=bool(session.capability(_REFRESH)))
    head_diffs.update(analysis)
    command = EXPLAIN if EXPLAIN in session.client.protocol.fm.commands else ""
    lenses = []
    for unit, predictions in available:
        changed = marks(head_diffs.of(uri, unit.analysed), predictions, settings)
        arguments: list[Any] = [uri, unit.hint] if command else []
        lens = code_lens(unit, predictions, settings, changed, command, arguments)
        if lens is not None:
            lenses.append(lens)
    return lenses


def code_lens(
    unit: LocatedUnit,
    predictions: Sequence[Prediction],
    settings: Settings,
    changed: render.Marks,
    command: str = "",
    arguments: Sequence[Any] = (),
) -> types.CodeLens | None:
    """The lens of one unit, on the line of its name; None when there is nothing to show.

    An empty ``command`` makes a lens that only shows text.
    """
    work = unit.analysed.code.work
    shown = [prediction for prediction in predictions if not is_hidden(prediction, settings, work)]
    title = render.label(shown, settings.label, WIDTH, changed, named=True, work=work)
    if not title:
        return None
    line = types.Position(unit.header_lines.start, 0)
    return types.CodeLens(types.Range(line, line), types.Command(title, command, arguments=list(arguments) or None))
