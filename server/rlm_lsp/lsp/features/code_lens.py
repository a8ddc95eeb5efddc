"""Code lenses above programs, PyTorch modules and networks: all metrics, with room for their names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from rlm_core.boundary import absorb
from rlm_core.types import Prediction

from rlm_lsp.lsp.document import LocatedUnit
from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering.hint_label import Marks, label
from rlm_lsp.settings.model import Settings

from .head_diff import HeadDiffs, marks

KINDS = frozenset({"program", "module", "network"})
WIDTH = 100
EXPLAIN = "rlm-lsp.explain"
_REFRESH = "workspace.code_lens.refresh_support"


class CodeLenses:
    """The lenses of one client, and the documents that it shows them for: their units need no hint.

    Many clients could show lenses and never ask for them, since the user has to switch them on.
    """

    def __init__(self, session: Session, head_diffs: HeadDiffs) -> None:
        self._session, self._head_diffs = session, head_diffs
        self._shown: set[str] = set()

    def shows(self, uri: str, unit: LocatedUnit) -> bool:
        """Return whether the client shows a lens for a unit of a document."""
        of_kind = unit.analysed.unit.kind in KINDS
        return of_kind and uri in self._shown and self._session.settings_for(uri).code_lens

    def forget(self, uri: str) -> None:
        """The document is closed."""
        self._shown.discard(uri)

    def refresh(self) -> None:
        """Have the client ask again, if it can."""
        if self._session.capability(_REFRESH):
            self._session.client.workspace_code_lens_refresh(None)

    async def lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """The lenses of a document, as far as its predictions are known."""
        session, uri = self._session, params.text_document.uri
        if uri not in self._shown:
            self._shown.add(uri)
            # The hints of these units may be shown already.
            session.on_results.fire()
        analysis = await session.analysis(uri)
        settings = session.settings_for(uri)
        if analysis is None or not settings.code_lens:
            return []
        units = [unit for unit in analysis.units if unit.analysed.unit.kind in KINDS]
        if not units:
            return []
        available = await session.available(analysis, units, refreshes=bool(session.capability(_REFRESH)))
        self._head_diffs.update(analysis)
        command = EXPLAIN if EXPLAIN in session.client.protocol.fm.commands else ""
        lenses = []
        for unit, predictions in available:
            arguments: list[Any] = [uri, unit.hint] if command else []
            try:
                changed = marks(self._head_diffs.of(uri, unit.analysed), predictions, settings)
                lens = code_lens(unit, predictions, settings, changed, command, arguments)
            except Exception as error:
                absorb(f"the lens of {unit.analysed.unit.qualname}", error)
                continue
            if lens is not None:
                lenses.append(lens)
        return lenses


def register(server: LanguageServer, session: Session, head_diffs: HeadDiffs) -> CodeLenses:
    """Answer requests for lenses, and have the client repeat them when there are new results."""
    lenses = CodeLenses(session, head_diffs)
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(partial(CodeLenses.lenses, lenses))
    session.on_close(lenses.forget)
    session.on_results(lenses.refresh)
    return lenses


def code_lens(
    unit: LocatedUnit,
    predictions: Sequence[Prediction],
    settings: Settings,
    changed: Marks,
    command: str = "",
    arguments: Sequence[Any] = (),
) -> types.CodeLens | None:
    """The lens of one unit, on the line of its name; None when there is nothing to show.

    An empty ``command`` makes a lens that only shows text.
    """
    work = unit.analysed.code.work
    title = label(predictions, settings.label, WIDTH, changed, named=True, work=work)
    if not title:
        return None
    line = types.Position(unit.header_lines.start, 0)
    return types.CodeLens(types.Range(line, line), types.Command(title, command, arguments=list(arguments) or None))
