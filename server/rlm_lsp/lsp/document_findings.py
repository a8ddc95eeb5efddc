"""One version of an open document -> its findings: what comments and configuration say, the model, and ``HEAD``.

The findings are those of ``rlm-lsp check``. The model is asked in small steps, so that a hover need not wait long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import CodeText, Unit

from rlm_lsp.budgets import BudgetTable, BudgetTables, Held, Rules, budget_queries, parse, read_comments, rules_of
from rlm_lsp.findings.finding import Confidence, Finding, RegressionRule, malformed, over_budget, regressions
from rlm_lsp.history.git import GitError
from rlm_lsp.history.pairing import earlier, same
from rlm_lsp.settings import Settings, SettingsStore
from rlm_lsp.settings.files import FILE_NAMES, user_file

from .documents import Analysis
from .scheduler import STEP_UNITS

if TYPE_CHECKING:
    from rlm_core.queries.kernel_sizes import SizesProblem
    from rlm_core.source.parsed import ParsedSource

    from .engine import Engine
    from .server import Server


@dataclass(frozen=True, slots=True)
class Told:
    """What there is to tell about a document; ``sources`` holds the texts that findings point into besides its own."""

    findings: tuple[Finding, ...]
    sizes: tuple[SizesProblem, ...] = ()
    sources: Mapping[Path, bytes] | None = None


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit to ask about: what holds for it, and what it was at ``HEAD``, if it has changed since."""

    analysed: AnalysedUnit
    rules: Rules
    before: CodeText | None = None


async def findings_of(ls: Server, analysis: Analysis) -> Told | None:
    """The findings of a version of a document; None when the document is no longer that version."""
    document = analysis.document
    settings = ls.settings_for(document.uri)

    def is_old() -> bool:
        return ls.documents.version_of(document.uri) != document.version

    read, sizes, rules, table = await asyncio.to_thread(_read, analysis, settings, ls.settings_store)
    sources = {table.path: table.source} if table is not None else {}
    await ls.scheduler.quiet(document.uri)
    if is_old():
        return None
    befores = await _befores(ls, analysis, settings)
    units = [
        _Unit(placed.analysed, told, before)
        for placed, told, before in zip(analysis.units, rules, befores, strict=True)
        if told.held or before is not None
    ]
    engine, found = ls.engine, list(read)
    for start in range(0, len(units), STEP_UNITS):
        step = units[start : start + STEP_UNITS]
        if is_old():
            return None
        found += await engine.run(partial(_judge, engine, step, settings), is_old) or []
    found.sort(key=lambda finding: finding.span.start_byte)
    return None if is_old() else Told(tuple(found), sizes, sources)


def confidence_of(settings: Settings) -> Confidence:
    """From which probabilities findings are told."""
    levels = (settings.severity[name] for name in ("information", "warning", "error"))
    return Confidence(settings.budget_confidence, *levels)


def configured(path: Path | None, settings: Settings, store: SettingsStore, table: BudgetTable | None) -> list[Held]:
    """The budgets that settings hold for a file, the most important first; those of ``table`` with their place.

    As for ``rlm-lsp check`` the nearest configuration above a file counts, also one below the workspace folder.
    """
    if path is None:
        return []
    user = str(user_file())
    before: list[Held] = []
    after: list[Held] = []
    overridden = set()
    for budget in settings.budgets_of(store.relative(path)):
        if Path(budget.place).name in FILE_NAMES:
            continue
        written, _ = parse(budget.text)
        (after if budget.place == user else before).extend(Held(entry.budget) for entry in written)
        if budget.place != user:
            overridden.add(budget.glob)
    if table is not None:
        table = replace(table, budgets=tuple(entry for entry in table.budgets if entry.glob not in overridden))
        before += table.held_of(path)
    return before + after


def _read(
    analysis: Analysis, settings: Settings, store: SettingsStore
) -> tuple[list[Finding], tuple[SizesProblem, ...], list[Rules], BudgetTable | None]:
    """What can be told without the model: malformed comments and sizes, and the rules of each unit."""
    document = analysis.document
    assert document.language is not None, "only documents in a known language are analysed"
    units = [placed.analysed.unit for placed in analysis.units]
    comments = read_comments(document.parsed, units)
    sizes = _sizes_problems(document.parsed, units) if document.language == "python" else ()
    table = BudgetTables().above(document.path) if document.path is not None else None
    held = configured(document.path, settings, store, table)
    rules = [rules_of(unit, told, held) for unit, told in zip(units, comments.units, strict=True)]
    return malformed(comments.malformed), sizes, rules, table


async def _befores(ls: Server, analysis: Analysis, settings: Settings) -> list[CodeText | None]:
    """What each unit was at ``HEAD`` if it was something else; None for a new or unchanged one."""
    nothing: list[CodeText | None] = [None] * len(analysis.units)
    document = analysis.document
    if not settings.changes or document.path is None or document.language in (None, "onnx") or not analysis.units:
        return nothing
    try:
        was = await ls.revisions.units(document.path, document.language or "")
    except GitError as error:
        ls.log_once(f"no comparison with HEAD: {error}")
        return nothing
    now = [placed.analysed for placed in analysis.units]
    pairs = zip(earlier(was or (), now), now, strict=True)
    return [other.code if other is not None and not same(other.code, entry.code) else None for other, entry in pairs]


def _judge(engine: Engine, units: Sequence[_Unit], settings: Settings, predictor: Predictor) -> list[Finding]:
    """Hold units against their budgets and against what they were; on the model's thread."""
    confidence = confidence_of(settings)
    found: list[Finding] = []
    asked = QuerySelection(None, settings.devices)
    questions = [(unit, budget_queries(predictor, unit.analysed.code, unit.rules, asked)) for unit in units]
    questions = [(unit, queries) for unit, queries in questions if queries]
    answers = engine.answers(predictor, [(unit.analysed.code, queries) for unit, queries in questions])
    for (unit, _), predictions in zip(questions, answers, strict=True):
        found += over_budget(unit.analysed.unit, unit.rules, predictions, confidence)
    return found + _regressed(engine, predictor, units, settings, confidence)


def _regressed(
    engine: Engine, predictor: Predictor, units: Sequence[_Unit], settings: Settings, confidence: Confidence
) -> list[Finding]:
    asked = QuerySelection(settings.metrics, settings.devices)
    pairs = []
    for unit in units:
        if unit.before is not None:
            queries = queries_for(predictor, unit.analysed.code, asked)
            kept = [query for query in queries if query.metric not in ("accuracy", *unit.rules.ignored)]
            pairs.append((unit, unit.before, kept))
    answers = engine.changes(predictor, [(before, unit.analysed.code, queries) for unit, before, queries in pairs])
    rule = RegressionRule(settings.change_ratio, settings.change_confidence)
    return [
        finding
        for (unit, *_), changes in zip(pairs, answers or [], strict=answers is not None)
        for finding in regressions(unit.analysed.unit, unit.rules, changes, "HEAD", rule, confidence)
    ]


def _sizes_problems(parsed: ParsedSource, units: Sequence[Unit]) -> tuple[SizesProblem, ...]:
    # Imported when first asked: it takes numpy, which the server's start must not.
    from rlm_core.queries.kernel_sizes import sizes_of

    return sizes_of(parsed, units).problems
