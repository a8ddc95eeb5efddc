"""Code actions on a unit's name: go to what costs, write or raise a budget, ignore findings, run a command about it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from rlm_core.types import Prediction, Span, Unit

from rlm_lsp.budgets.comments import Replacement, ignore, rounded_up, upper_end, write_budget
from rlm_lsp.budgets.syntax import Budget, parse, render
from rlm_lsp.findings.finding import Finding
from rlm_lsp.history.benchmarks import benchmark_for
from rlm_lsp.history.measurements import command_for
from rlm_lsp.lsp.document import Analysis, LocatedUnit
from rlm_lsp.lsp.document_findings import exceeded_budgets
from rlm_lsp.lsp.session import Session
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.lsp.unit_rules import UnitRules
from rlm_lsp.rendering.growth_words import curable_place, growth_place
from rlm_lsp.rendering.work_words import costly_lines, plain

from .commands import COPY_JSON, EXPLAIN, GO_TO, MEASURE
from .diagnostics import SOURCE
from .gpu_comparison import COMPARE_GPUS, is_compared

_FIX, _REWRITE = types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite
_FINDINGS = frozenset({"over-budget", "regression", "growth", "wait", "wait-in-loop", "blocking-sleep", "row-by-row"})
_GROWTH = frozenset({"growth", "regression"})
_MOST_LINES = 2  # that a finding leads to
_Action = types.CodeAction | types.Command


def register(server: LanguageServer, session: Session, unit_rules: UnitRules) -> None:
    """Answer requests for code actions."""
    options = types.CodeActionOptions([_FIX, _REWRITE])
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(partial(code_actions, session, unit_rules))


async def code_actions(session: Session, unit_rules: UnitRules, params: types.CodeActionParams) -> list[_Action]:
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
    actions: list[_Action] = []
    only = params.context.only
    if session.capability("text_document.code_action.code_action_literal_support"):
        found = [entry for entry in params.context.diagnostics if entry.source == SOURCE and entry.code in _FINDINGS]
        if found and _is_requested(_FIX, only):
            actions += await _fixes(session, unit_rules, analysis, unit, found, predictions)
        if not found and _is_requested(_REWRITE, only):
            rules = (await unit_rules.read(analysis)).rules[analysis.units.index(unit)]
            limited = {active.budget.metric for active in rules.budgets}
            free = [entry for entry in predictions if entry.metric not in limited]
            offered = await asyncio.to_thread(lambda: list(_budgets(analysis, unit, free)))
            actions += _edit_actions(session, analysis, offered, _REWRITE)
        if not found and _is_requested(_REWRITE, only) and session.settings_for(uri).measure:
            actions += await _benchmark(session, analysis, unit)
    if not only:
        position = types.Position(unit.header_lines.start, 0)
        for line, words in _places(unit, predictions) if session.capability("window.show_document.support") else ():
            title = f"Go to line {line + 1}: {words}"
            actions.append(types.Command(title, GO_TO, arguments=[uri, types.Position(line, 0)]))
        titles = {COPY_JSON: "Copy predictions as JSON"}
        if any(prediction.median is not None for prediction in predictions):
            titles[EXPLAIN] = "Explain prediction: which statements matter"
            if is_compared(unit.analysed.unit):
                titles[COMPARE_GPUS] = "Compare GPUs"
        is_offered = unit.analysed.unit.kind == "function" and session.settings_for(uri).measure
        if is_offered and await asyncio.to_thread(command_for, analysis.document.path) is not None:
            titles[MEASURE] = "Measure this function: show the command"
        actions += [types.Command(title, name, arguments=[uri, position]) for name, title in titles.items()]
    return actions


async def _benchmark(session: Session, analysis: Analysis, located: LocatedUnit) -> list[types.CodeAction]:
    """An action that writes a test that benchmarks a function, where the client can create files."""
    operations = session.capability("workspace.workspace_edit.resource_operations") or ()
    if types.ResourceOperationKind.Create not in operations:
        return []
    if not session.capability("workspace.workspace_edit.document_changes"):
        return []
    unit = located.analysed
    made = await asyncio.to_thread(benchmark_for, unit.unit, unit.code, analysis.document.path)
    if made is None:
        return []
    uri, start = made.path.as_uri(), types.Position(0, 0)
    document = types.OptionalVersionedTextDocumentIdentifier(uri, None)
    text = types.TextDocumentEdit(document, [types.TextEdit(types.Range(start, start), made.text)])
    edit = types.WorkspaceEdit(document_changes=[types.CreateFile(uri=uri), text])
    return [types.CodeAction(f"Benchmark this function: write {made.shown}", _REWRITE, edit=edit)]


async def _fixes(
    session: Session,
    unit_rules: UnitRules,
    analysis: Analysis,
    located: LocatedUnit,
    diagnostics: Sequence[types.Diagnostic],
    predictions: Sequence[Prediction],
) -> list[types.CodeAction]:
    """Return the actions for findings: look at the lines that cost most; ignore them or, last, raise the budget."""
    findings = await exceeded_budgets(session, unit_rules, analysis, located)
    unit = located.analysed.unit
    actions = []
    if session.capability("window.show_document.support"):
        places = _costly_lines(located, findings)
        if _GROWTH & {entry.code for entry in diagnostics} and (place := growth_place(located.analysed, predictions)):
            places = [(place[0], _makes_grow(place[1])), *places]
        for line, words in places:
            title = f"Go to line {line + 1}: {words}"
            command = types.Command(title, GO_TO, arguments=[analysis.document.uri, types.Position(line, 0)])
            actions.append(types.CodeAction(title, _FIX, diagnostics=diagnostics, command=command))
    offered = await asyncio.to_thread(lambda: [*_ignoring(analysis, unit), *_raised(analysis, unit, findings)])
    return actions + _edit_actions(session, analysis, offered, _FIX, diagnostics)


def _places(located: LocatedUnit, predictions: Sequence[Prediction]) -> list[tuple[int, str]]:
    """The line that makes a latency grow, the one with the most expensive cheaper rewrite, and what they do."""
    growing = growth_place(located.analysed, predictions)
    curable = curable_place(located.analysed, predictions)
    places = [(growing[0], _makes_grow(growing[1]))] if growing is not None else []
    return places + ([(curable[0], f"{curable[1]} takes much of the time")] if curable is not None else [])


def _makes_grow(text: str) -> str:
    return f"{text} makes the cost grow"


def _costly_lines(located: LocatedUnit, findings: Sequence[Finding]) -> list[tuple[int, str]]:
    """The 0-based lines of the document that cost most of what findings are about, and what they do."""
    found: dict[int, str] = {}
    for finding in findings:
        if finding.prediction is not None:
            for line, words in costly_lines(located.analysed, finding.prediction):
                found.setdefault(line, plain(words))
    return list(found.items())[:_MOST_LINES]


def _ignoring(analysis: Analysis, unit: Unit) -> Iterator[tuple[str, Replacement]]:
    edit = ignore(*_of_document(analysis), unit, analysis.document.path)
    if edit is not None:
        yield "Ignore findings of this unit", edit


def _raised(analysis: Analysis, unit: Unit, findings: Sequence[Finding]) -> Iterator[tuple[str, Replacement]]:
    """Titles and edits of budgets that the predictions that exceed those of this file would keep."""
    exceeded: dict[Span, list[Finding]] = {}
    for finding in findings:
        written = [place for place in finding.related if place.path is None]
        if finding.code == "over-budget" and finding.metric != "accuracy" and written:
            exceeded.setdefault(written[0].span, []).append(finding)
    for span, entries in exceeded.items():
        end = upper_end([entry.prediction for entry in entries if entry.prediction is not None])
        [old], _ = parse(entries[0].budget)
        if end is None:
            continue
        budget = replace(old.budget, value=rounded_up(old.budget.metric, end))
        edit = write_budget(*_of_document(analysis), unit, budget, analysis.document.path, at=span)
        if edit is not None:
            yield f"Raise the budget: {edit.text}", edit


def _budgets(
    analysis: Analysis, located: LocatedUnit, predictions: Sequence[Prediction]
) -> Iterator[tuple[str, Replacement]]:
    """Titles and edits of budgets that the predictions keep, one for each metric."""
    for metric in dict.fromkeys(entry.metric for entry in predictions if entry.metric != "accuracy"):
        end = upper_end([entry for entry in predictions if entry.metric == metric])
        if end is None:
            continue
        budget = Budget(metric, rounded_up(metric, end))
        edit = write_budget(*_of_document(analysis), located.analysed.unit, budget, analysis.document.path)
        if edit is not None:
            yield f"Set budget: {render([budget])}", edit


def _of_document(analysis: Analysis) -> tuple[bytes, str, list[Unit]]:
    document = analysis.document
    assert document.language is not None, "only documents in a supported language are analysed"
    return document.source, document.language, [other.analysed.unit for other in analysis.units]


def _edit_actions(
    session: Session,
    analysis: Analysis,
    offered: Sequence[tuple[str, Replacement]],
    kind: types.CodeActionKind,
    diagnostics: Sequence[types.Diagnostic] | None = None,
) -> list[types.CodeAction]:
    """Actions that edit the analysed version; none where the document has a newer one."""
    document = analysis.document
    if session.documents.version_of(document.uri) != document.version:
        return []
    return [
        types.CodeAction(title, kind, diagnostics=diagnostics, edit=_workspace_edit(session, analysis, edit))
        for title, edit in offered
    ]


def _workspace_edit(session: Session, analysis: Analysis, edit: Replacement) -> types.WorkspaceEdit:
    """An edit of the analysed version, if the client supports versioned edits."""
    document = analysis.document
    lines = Lines(document.source, session.client.workspace.position_codec)
    changes = [types.TextEdit(types.Range(lines.position(edit.start), lines.position(edit.end)), edit.text)]
    if session.capability("workspace.workspace_edit.document_changes"):
        versioned = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(versioned, changes)])
    return types.WorkspaceEdit(changes={document.uri: changes})


def _is_on_name(position: types.Position, unit: LocatedUnit, lines: Lines) -> bool:
    """Return whether a position is in the name of a unit or next to it; a unit without a name has its first line."""
    name = unit.analysed.unit.name
    start, end = lines.position(name.start_byte), lines.position(name.end_byte)
    before, after = (start.line, start.character), (end.line, end.character)
    return before <= (position.line, position.character) <= after


def _is_requested(kind: str, only: Sequence[str] | None) -> bool:
    return not only or any(not parent or kind == parent or kind.startswith(f"{parent}.") for parent in only)
