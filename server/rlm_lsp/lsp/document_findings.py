"""One version of an open document -> its findings, from the judge of ``rlm-lsp check``.

The model runs in small steps, so that a hover does not wait long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from rlm_core.inference.predictor import Predictor
from rlm_core.types import Unit

from rlm_lsp.budgets.rules import Rules
from rlm_lsp.findings.finding import Finding
from rlm_lsp.findings.judge import UnitCase, cases_of, criteria_of, judge, read_rules
from rlm_lsp.history.comparison import UnitDiff, unit_diffs
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.project import BudgetTable, BudgetTables, configured_budgets

from .documents import Analysis
from .prediction_service import PredictionService
from .scheduler import STEP_UNITS
from .session import Session

if TYPE_CHECKING:
    from rlm_core.queries.kernel_sizes import SizesProblem
    from rlm_core.source.parsed import ParsedSource


@dataclass(frozen=True, slots=True)
class DocumentFindings:
    """The findings of a document; ``sources`` holds the texts of other files that findings point into."""

    findings: tuple[Finding, ...]
    sizes: tuple[SizesProblem, ...] = ()
    sources: Mapping[Path, bytes] | None = None


async def findings_of(session: Session, analysis: Analysis) -> DocumentFindings | None:
    """The findings of a version of a document; None when the document has a newer version."""
    document = analysis.document
    settings = session.settings_for(document.uri)

    def is_old() -> bool:
        return session.documents.version_of(document.uri) != document.version

    relative = session.settings_store.relative(document.path) if document.path is not None else PurePath()
    rules, findings, sizes, table = await asyncio.to_thread(_read, analysis, settings, relative)
    sources = {table.path: table.source} if table is not None else {}
    await session.scheduler.quiet(document.uri)
    if is_old():
        return None
    diffs = await _diffs(session, analysis, settings)
    units = [located.analysed for located in analysis.units]
    service = session.predictions
    cases = cases_of(units, rules, diffs, criteria_of(settings))
    for start in range(0, len(cases), STEP_UNITS):
        if is_old():
            return None
        findings += await service.run(partial(_judge, service, cases[start : start + STEP_UNITS]), is_old) or []
    findings.sort(key=lambda finding: finding.span.start_byte)
    return None if is_old() else DocumentFindings(tuple(findings), sizes, sources)


def _read(
    analysis: Analysis, settings: Settings, relative: PurePath
) -> tuple[list[Rules], list[Finding], tuple[SizesProblem, ...], BudgetTable | None]:
    """The rules of each unit, and the findings that need no model: malformed comments and sizes."""
    document = analysis.document
    assert document.language is not None, "only documents in a supported language are analysed"
    units = [located.analysed for located in analysis.units]
    table = BudgetTables().above(document.path) if document.path is not None else None
    configured = configured_budgets(document.path, relative, settings, table)
    rules, findings = read_rules(document.parsed, units, configured)
    python = document.language == "python"
    sizes = _sizes_problems(document.parsed, [entry.unit for entry in units]) if python else ()
    return rules, findings, sizes, table


async def _diffs(session: Session, analysis: Analysis, settings: Settings) -> list[UnitDiff]:
    """The units of a document compared with ``HEAD``; all are new where nothing is compared."""
    units = [located.analysed for located in analysis.units]
    before = await session.units_at_head(analysis.document) if settings.changes and units else None
    return unit_diffs(before or (), units)


def _judge(service: PredictionService, cases: Sequence[UnitCase], predictor: Predictor) -> list[Finding]:
    """Judge some units; runs on the model's worker."""
    judgements = judge(predictor, cases, partial(service.answer, predictor), partial(service.compare, predictor))
    return [finding for judgement in judgements for finding in judgement.findings]


def _sizes_problems(parsed: ParsedSource, units: Sequence[Unit]) -> tuple[SizesProblem, ...]:
    # Imported on first use: it takes numpy, which must not slow down the start of the server.
    from rlm_core.queries.kernel_sizes import sizes_problems

    return sizes_problems(parsed, units)
