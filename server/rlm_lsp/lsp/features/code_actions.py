"""Code actions on a unit's name: write a budget from its prediction, ignore its findings, run a command about it.

An edit is offered only if the edited text, read again, has the intended directive for the unit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import partial
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Metric, Prediction, Unit

from rlm_lsp.budgets.comments import LocatedBudget, UnitComments, read_comments
from rlm_lsp.budgets.syntax import SCALES, Budget
from rlm_lsp.budgets.syntax import render as budget_text
from rlm_lsp.history.measurements import command_for
from rlm_lsp.lsp.documents import Analysis, LocatedUnit
from rlm_lsp.lsp.session import Session
from rlm_lsp.lsp.text_positions import Lines

from .commands import COPY_JSON, EXPLAIN, MEASURE
from .diagnostics import SOURCE

KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite)
_FINDINGS = frozenset({"over-budget", "regression", "growth", "wait"})
_HASH_LANGUAGES = frozenset({"python", "triton", "pytorch", "ruby"})
_DIGITS = 2
_SPACE = b" \t"


def register(server: LanguageServer, session: Session) -> None:
    """Answer requests for code actions."""
    options = types.CodeActionOptions(list(KINDS))
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(partial(code_actions, session))


async def code_actions(session: Session, params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
    """The actions for the unit whose name is under the cursor, or at the start of the selection."""
    uri = params.text_document.uri
    analysis = await session.analysis(uri)
    unit = analysis.unit_at(params.range.start.line) if analysis is not None else None
    if analysis is None or unit is None or not session.predictions.ready:
        return []
    lines = Lines(analysis.document.source, session.client.workspace.position_codec)
    if not _is_on_name(params.range.start, unit, lines):
        return []
    predictions = await session.predict(uri, unit.analysed.code)
    actions: list[types.CodeAction | types.Command] = []
    only = params.context.only
    if session.capability("text_document.code_action.code_action_literal_support"):
        fixed = [entry for entry in params.context.diagnostics if entry.source == SOURCE and entry.code in _FINDINGS]
        kind = types.CodeActionKind.QuickFix if fixed else types.CodeActionKind.RefactorRewrite
        offered = await asyncio.to_thread(_edits, analysis, unit, predictions)
        for title, edits in offered:
            if session.documents.version_of(uri) == analysis.document.version and _is_requested(kind, only):
                edit = _workspace_edit(session, analysis, lines, edits)
                actions.append(types.CodeAction(title, kind, diagnostics=fixed or None, edit=edit))
    if not only:
        position = types.Position(unit.header_lines.start, 0)
        titles = {COPY_JSON: "Copy predictions as JSON"}
        if any(prediction.median is not None for prediction in predictions):
            titles[EXPLAIN] = "Explain prediction: which statements matter"
        is_offered = unit.analysed.unit.kind == "function" and session.settings_for(uri).measure
        if is_offered and await asyncio.to_thread(command_for, analysis.document.path) is not None:
            titles[MEASURE] = "Measure this function: show the command"
        actions += [types.Command(title, name, arguments=[uri, position]) for name, title in titles.items()]
    return actions


@dataclass(frozen=True, slots=True)
class Replacement:
    """The bytes ``[start, end)`` of a text become ``text``."""

    start: int
    end: int
    text: str


def rounded_up(metric: Metric, value: float) -> float:
    """The next value, in SI units, that reads well: two significant digits in the unit that it is shown in."""
    number = Decimal(repr(value))
    scale = next((unit for unit in reversed(SCALES[metric].values()) if number >= unit), min(SCALES[metric].values()))
    shown = number / scale
    step = Decimal(1).scaleb(max(shown.adjusted() - _DIGITS + 1, 0 if scale == 1 and metric == "memory" else -12))
    return float((shown / step).to_integral_value(ROUND_CEILING) * step * scale)


def budgets_from(predictions: Sequence[Prediction]) -> list[Budget]:
    """One budget per metric that the predictions stay below: the largest upper end of their 80 % bands."""
    ends: dict[Metric, float] = {}
    for prediction in predictions:
        if prediction.metric != "accuracy" and prediction.band is not None:
            end = max(prediction.band.high, prediction.floor)
            ends[prediction.metric] = max(end, ends.get(prediction.metric, 0.0))
    return [Budget(metric, rounded_up(metric, end)) for metric, end in ends.items() if 0 < end < math.inf]


def set_budgets(
    source: bytes, language: str, units: Sequence[Unit], unit: Unit, budgets: Sequence[Budget], path: Path | None = None
) -> list[Replacement] | None:
    """The edits that give a unit these ``budgets``; None where no comment can."""
    comments = read_comments(ParsedSource(source, language), units).units[units.index(unit)]
    present: Mapping[Metric, LocatedBudget] = {
        placed.budget.metric: placed
        for placed in reversed(comments.budgets)
        if placed.budget.device is None and not placed.budget.workload
    }
    edits = [
        Replacement(span.start_byte, span.end_byte, budget_text([budget]))
        for budget in budgets
        if budget.metric in present and (span := present[budget.metric].span)
    ]
    missing = [budget for budget in budgets if budget.metric not in present]
    for line in _comment_lines(source, unit, language, budget_text(missing)) if missing else [None]:
        candidate = [*edits, line] if line is not None else edits
        result = _comments_after(applied(source, candidate), language, units, unit, path)
        if result is not None and all(budget in [placed.budget for placed in result.budgets] for budget in budgets):
            return candidate
    return None


def ignore(
    source: bytes, language: str, units: Sequence[Unit], unit: Unit, path: Path | None = None
) -> list[Replacement] | None:
    """The edit after which a unit has no findings; None where no comment can do that, or one already does."""
    if read_comments(ParsedSource(source, language), units).units[units.index(unit)].ignored:
        return None
    for line in _comment_lines(source, unit, language, "ignore"):
        result = _comments_after(applied(source, [line]), language, units, unit, path)
        if result is not None and result.ignored:
            return [line]
    return None


def applied(source: bytes, edits: Sequence[Replacement]) -> bytes:
    """A text after edits that do not overlap."""
    for edit in sorted(edits, key=lambda edit: -edit.start):
        source = source[: edit.start] + edit.text.encode() + source[edit.end :]
    return source


def _comment_lines(source: bytes, unit: Unit, language: str, directive: str) -> list[Replacement]:
    """Candidates for a comment line: above the unit, and, as above ``<?php`` none can be, above its name."""
    if languages.by_name(language).grammar is None:
        return []
    candidates = []
    for start in dict.fromkeys((_line_start(source, unit.span.start_byte), _line_start(source, unit.name.start_byte))):
        line = source[start:]
        indent = line[: len(line) - len(line.lstrip(_SPACE))].decode()
        newline = "\r\n" if source[start:].partition(b"\n")[0].endswith(b"\r") else "\n"
        mark = "#" if language in _HASH_LANGUAGES else "//"
        candidates.append(Replacement(start, start, f"{indent}{mark} rlm: {directive}{newline}"))
    return candidates


def _line_start(source: bytes, offset: int) -> int:
    return max(source.rfind(b"\n", 0, offset), source.rfind(b"\r", 0, offset)) + 1


def _comments_after(
    text: bytes, language: str, units: Sequence[Unit], unit: Unit, path: Path | None
) -> UnitComments | None:
    """The directives for a unit in an edited text; None if the edit has changed which units there are."""
    parsed = ParsedSource(text, language)
    after = find_units(parsed, path)
    if [(entry.kind, entry.qualname) for entry in after] != [(entry.kind, entry.qualname) for entry in units]:
        return None
    return read_comments(parsed, after).units[units.index(unit)]


def _edits(
    analysis: Analysis, located: LocatedUnit, predictions: Sequence[Prediction]
) -> list[tuple[str, list[Replacement]]]:
    """Titles and edits of the comments that can be written above a unit; parses the edited text."""
    document, unit = analysis.document, located.analysed.unit
    assert document.language is not None, "only documents in a supported language are analysed"
    units = [other.analysed.unit for other in analysis.units]
    budgets = budgets_from(predictions)
    offered = []
    setting = set_budgets(document.source, document.language, units, unit, budgets, document.path) if budgets else None
    if setting and applied(document.source, setting) != document.source:
        offered.append((f"Set budget: {budget_text(budgets)}", setting))
    ignoring = ignore(document.source, document.language, units, unit, document.path)
    if ignoring:
        offered.append(("Ignore findings of this unit", ignoring))
    return offered


def _workspace_edit(
    session: Session, analysis: Analysis, lines: Lines, edits: Sequence[Replacement]
) -> types.WorkspaceEdit:
    """Edits of the analysed version, if the client supports versioned edits."""
    document = analysis.document
    changes = [
        types.TextEdit(types.Range(lines.position(edit.start), lines.position(edit.end)), edit.text) for edit in edits
    ]
    if session.capability("workspace.workspace_edit.document_changes"):
        versioned = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(versioned, changes)])
    return types.WorkspaceEdit(changes={document.uri: changes})


def _is_on_name(position: types.Position, unit: LocatedUnit, lines: Lines) -> bool:
    """Whether a position is in the name of a unit or next to it; a unit without a name has its first line."""
    name = unit.analysed.unit.name
    start, end = lines.position(name.start_byte), lines.position(name.end_byte)
    before, after = (start.line, start.character), (end.line, end.character)
    return before <= (position.line, position.character) <= after


def _is_requested(kind: str, only: Sequence[str] | None) -> bool:
    return not only or any(not parent or kind == parent or kind.startswith(f"{parent}.") for parent in only)
