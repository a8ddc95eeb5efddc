"""Code actions on a unit's header: a budget from its prediction, ignoring it, its predictions as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types
from rlm_core.types import Prediction

from rlm_lsp.budgets.syntax import render as budget_text
from rlm_lsp.history.measured import command_for
from rlm_lsp.lsp.documents import Analysis, Placed
from rlm_lsp.lsp.text_positions import Lines

from .commands import COPY_JSON, EXPLAIN, MEASURE
from .diagnostics import SOURCE
from .edits import Replacement, applied, budgets_from, ignore, set_budgets
from .hover import unit_at

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite)
_FINDINGS = frozenset({"over-budget", "regression"})


async def code_actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
    """What can be done about the unit whose header is under the cursor."""
    uri = params.text_document.uri
    analysis = await ls.analysis(uri)
    placed = unit_at(analysis, params.range.start.line) if analysis is not None else None
    if analysis is None or placed is None or not ls.engine.ready:
        return []
    if ls.cached(uri, placed.analysed.code) is None:
        await ls.engine.predict([placed.analysed.code])
    predictions = ls.cached(uri, placed.analysed.code) or ()
    found: list[types.CodeAction | types.Command] = []
    only = params.context.only
    if _takes_edits(ls):
        about = [one for one in params.context.diagnostics if one.source == SOURCE and one.code in _FINDINGS]
        offered = await asyncio.to_thread(_edits, analysis, placed, predictions)
        lines = Lines(analysis.document.source, ls.workspace.position_codec)
        for title, edits in offered:
            kind = types.CodeActionKind.QuickFix if about else types.CodeActionKind.RefactorRewrite
            if ls.documents.version_of(uri) == analysis.document.version and _is_wanted(kind, only):
                edit = _workspace_edit(ls, analysis, lines, edits)
                found.append(types.CodeAction(title, kind, diagnostics=about or None, edit=edit))
    if not only:
        place = types.Position(placed.header_lines.start, 0)
        commands = [types.Command("Copy predictions as JSON", COPY_JSON, arguments=[uri, place])]
        if any(prediction.median is not None for prediction in predictions):
            commands.append(types.Command("Explain prediction: which lines matter", EXPLAIN, arguments=[uri, place]))
        unit = placed.analysed.unit
        offered_command = await asyncio.to_thread(command_for, analysis.document.path)
        if unit.kind == "function" and offered_command is not None:
            commands.append(types.Command("Measure this function: show the command", MEASURE, arguments=[uri, place]))
        found += commands
    return found


def _edits(
    analysis: Analysis, placed: Placed, predictions: Sequence[Prediction]
) -> list[tuple[str, list[Replacement]]]:
    """Titles and edits of what may be written above a unit; parses the edited text."""
    document, unit = analysis.document, placed.analysed.unit
    assert document.language is not None, "only documents in a known language are analysed"
    units = [other.analysed.unit for other in analysis.units]
    budgets = budgets_from(predictions)
    found = []
    setting = set_budgets(document.source, document.language, units, unit, budgets) if budgets else None
    if setting and applied(document.source, setting) != document.source:
        found.append((f"Set budget: {budget_text(budgets)}", setting))
    ignoring = ignore(document.source, document.language, units, unit)
    if ignoring:
        found.append(("Ignore findings of this unit", ignoring))
    return found


def _workspace_edit(ls: Server, analysis: Analysis, lines: Lines, edits: Sequence[Replacement]) -> types.WorkspaceEdit:
    """Edits of the version that was analysed, where the client can tell versions apart."""
    document = analysis.document
    changes = [
        types.TextEdit(types.Range(lines.position(edit.start), lines.position(edit.end)), edit.text) for edit in edits
    ]
    workspace = ls.client_capabilities.workspace
    if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
        versioned = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(versioned, changes)])
    return types.WorkspaceEdit(changes={document.uri: changes})


def _takes_edits(ls: Server) -> bool:
    """Whether the client takes more than bare commands."""
    text_document = ls.client_capabilities.text_document
    actions = text_document.code_action if text_document else None
    return bool(actions and actions.code_action_literal_support)


def _is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    return not only or any(not one or kind == one or kind.startswith(f"{one}.") for one in only)
