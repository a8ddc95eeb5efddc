"""One version of an open document -> its findings, from the judge of ``rlm-lsp check``.

The model runs in small steps, so that a hover does not wait long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.boundary import guarded
from rlm_core.inference.predictor import Predictor

from rlm_lsp.findings.finding import Finding
from rlm_lsp.findings.judge import UnitCase, cases_of, criteria_of, judge
from rlm_lsp.findings.waits import wait_findings
from rlm_lsp.history.comparison import NEW, UnitDiff, unit_diffs
from rlm_lsp.settings.model import Settings

from .document import Analysis, LocatedUnit
from .prediction_service import PredictionService
from .scheduler import STEP_UNITS
from .session import Session
from .unit_rules import UnitRules

if TYPE_CHECKING:
    from rlm_core.queries.size_comments import SizesProblem


@dataclass(frozen=True, slots=True)
class DocumentFindings:
    """The findings of a document; ``sources`` holds the texts of other files that findings point into."""

    findings: tuple[Finding, ...]
    sizes: tuple[SizesProblem, ...] = ()
    sources: Mapping[Path, bytes] | None = None


async def findings_of(session: Session, unit_rules: UnitRules, analysis: Analysis) -> DocumentFindings | None:
    """The findings of a version of a document; None when the document has a newer version."""
    document = analysis.document
    settings = session.settings_for(document.uri)

    def is_old() -> bool:
        return session.documents.version_of(document.uri) != document.version

    read = await unit_rules.read(analysis)
    findings, table = list(read.findings), read.table
    sizes = await asyncio.to_thread(_sizes_problems, analysis) if document.language == "python" else ()
    sources = {table.path: table.source} if table is not None else {}
    await session.scheduler.quiet(document.uri)
    if is_old():
        return None
    diffs = await _diffs(session, analysis, settings)
    units = [located.analysed for located in analysis.units]
    service = session.predictions
    cases = cases_of(units, read.rules, diffs, criteria_of(settings))
    findings += wait_findings(units, read.rules, [NEW] * len(units))
    for start in range(0, len(cases), STEP_UNITS):
        if is_old():
            return None
        findings += await service.run(partial(_judge, service, cases[start : start + STEP_UNITS]), is_old) or []
    findings.sort(key=lambda finding: finding.span.start_byte)
    return None if is_old() else DocumentFindings(tuple(findings), sizes, sources)


async def exceeded_budgets(
    session: Session, unit_rules: UnitRules, analysis: Analysis, located: LocatedUnit
) -> list[Finding]:
    """The findings about the budgets of one unit."""
    rules = (await unit_rules.read(analysis)).rules[analysis.units.index(located)]
    case = UnitCase(located.analysed, rules, criteria_of(session.settings_for(analysis.document.uri)), is_edited=False)
    service = session.predictions
    return await service.run(partial(_judge, service, [case])) or []


async def _diffs(session: Session, analysis: Analysis, settings: Settings) -> list[UnitDiff]:
    """The units of a document compared with ``HEAD``; all are new where nothing is compared."""
    units = [located.analysed for located in analysis.units]
    wanted = settings.changes and settings.change_diagnostics
    before = await session.units_at_head(analysis.document) if wanted and units else None
    return unit_diffs(before or (), units)


def _judge(service: PredictionService, cases: Sequence[UnitCase], predictor: Predictor) -> list[Finding]:
    """Judge some units; runs on the model's worker."""
    judgements = judge(predictor, cases, partial(service.answer, predictor), partial(service.compare, predictor))
    return [finding for judgement in judgements for finding in judgement.findings]


def _sizes_problems(analysis: Analysis) -> tuple[SizesProblem, ...]:
    # Imported on first use: it takes numpy, which must not slow down the start of the server.
    from rlm_core.queries.kernel_sizes import sizes_problems

    document = analysis.document
    units = [located.analysed.unit for located in analysis.units]
    nothing: tuple[SizesProblem, ...] = ()
    return guarded(
        f"the sizes in {document.uri}", lambda: sizes_problems(document.parsed, units), lambda error: nothing
    )
