"""Code lenses above programs, PyTorch modules and networks: all metrics, with room for their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from rlm_core.types import Metric, Prediction

from rlm_lsp.lsp.documents import Placed
from rlm_lsp.rendering import values as render
from rlm_lsp.settings.model import Settings

from .answers import answers
from .head_diff import marks
from .inlay_hints import is_hidden

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

KINDS = frozenset({"program", "module", "network"})
WIDTH = 100
EXPLAIN = "rlm-lsp.explain"


async def code_lenses(ls: Server, params: types.CodeLensParams) -> list[types.CodeLens]:
    """The lenses of a document, as far as its predictions are known."""
    uri = params.text_document.uri
    analysis = await ls.analysis(uri)
    settings = ls.settings_for(uri)
    if analysis is None or not settings.code_lens:
        return []
    wanted = [unit for unit in analysis.units if unit.analysed.unit.kind in KINDS]
    if not wanted:
        return []
    found = await answers(ls, analysis, wanted, refreshes=refreshes(ls))
    ls.changes.look(analysis)
    command = EXPLAIN if EXPLAIN in ls.protocol.fm.commands else ""
    lenses = []
    for unit, predictions in found:
        changed = marks(ls.changes.of(uri, unit.analysed), predictions, settings)
        arguments: list[Any] = [uri, unit.hint] if command else []
        lens = code_lens(unit, predictions, settings, changed, command, arguments)
        if lens is not None:
            lenses.append(lens)
    return lenses


def code_lens(
    unit: Placed,
    predictions: Sequence[Prediction],
    settings: Settings,
    changed: Mapping[Metric, str],
    command: str = "",
    arguments: Sequence[Any] = (),
) -> types.CodeLens | None:
    """The lens of one unit, on the line of its name; None when there is nothing to show.

    An empty ``command`` makes a lens that only shows text.
    """
    shown = [prediction for prediction in predictions if not is_hidden(prediction, settings)]
    title = render.label(shown, settings.label, WIDTH, changed, named=True)
    if not title:
        return None
    line = types.Position(unit.header_lines.start, 0)
    return types.CodeLens(types.Range(line, line), types.Command(title, command, arguments=list(arguments) or None))


def refreshes(ls: Server) -> bool:
    """Whether the client asks for lenses again when told to."""
    workspace = ls.client_capabilities.workspace
    return bool(workspace and workspace.code_lens and workspace.code_lens.refresh_support)
